# From a folder of text and a table of questions to a ranker (book/own_documents.md):
#   snakemake -c2 own --config corpus=my_texts questions=my_questions.tsv
# The Snakefile's rule `run` makes the runs that aslab.own plans. The comparison takes seconds and is made, and shown, at every call.
from snakemake.exceptions import WorkflowError

from aslab import own, own_inputs

OWN = None
if "questions" in config or "own" in sys.argv:  # a job on a node of a cluster has other targets
    try:
        OWN = own.chain(config)
        if workflow.is_main_process:
            print(own_inputs.require_readable(OWN), file=sys.stderr)
    except (ValueError, OSError) as error:
        raise WorkflowError(f"own: {error}") from None


localrules: own


rule own:
    input: [record(job.folder) for job in OWN.jobs] if OWN else []
    params: command=OWN.command if OWN else ""
    shell: "{params.command}"
