"""The names of the measures that functions of `rankings`, `verdicts`, `answers` and of the tasks compute."""

from ..registry import register

register("accuracy", "Accuracy", log=True, curve=True, card=2)
register("f1", "F1")
register("auc", "AUC", card=1)
register("rank_1", "First in its group")
register("label_accuracy", "Label accuracy", of="claim", log=True, curve=True, card=1)
register("answer_f1", "Answer F1", of="context", log=True, card=2)
register("evidence_f1", "Evidence F1", of="context", log=True, curve=True)
register("map_raw", "mAP, raw vectors", of="context")
register("map_projected", "mAP, as trained", of="context", log=True, card=1)
register("map_predicted_type", "mAP, predicted type", of="context")

# Notebooks show these and no paper prints them.
for key, title in {
    "answer_em": "Answer EM",
    "evidence_em": "Evidence EM",
    "joint_f1": "Joint F1",
    "map_evidence_head": "mAP, evidence head",
    "type_accuracy": "Type accuracy",
    "f1_supports": "F1 SUPPORTS",
    "f1_not_enough_info": "F1 NOT ENOUGH INFO",
    "f1_refutes": "F1 REFUTES",
    "majority": "Larger class",
    "auc_tfidf": "AUC, TF-IDF",
    "rank_1_tfidf": "First in its group, TF-IDF",
    "rank_1_chance": "First in its group, by chance",
}.items():
    register(key, title, printed=False)
