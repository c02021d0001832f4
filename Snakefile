# So that `snakemake -c2 sentence_objectives_laptop` works from here as it is.
include: "experiments/Snakefile"
