"""Whether a model reads batches as they were made."""


def require(model, batch: dict) -> None:
    """Refuse batches that a model would read in silence otherwise than they were made.

    Args:
        batch: the first optimiser batch of the training.
    Raises: ValueError for masked tokens and a model without a head that predicts them; for a context (token types 0, 1 and 2) and a model
        that reads two texts; for slots of another length than those of a joint model.
    """
    joint, micro = getattr(model, "joint", None), batch["micro"][0]
    if batch["masked"] and getattr(model, "masked", True) is None:
        raise ValueError(
            f"the batches mask tokens ({batch['masked']} in the first), and the model has no head that predicts them: "
            "give the batches mlm_share=0, or the model a masked-language-model head"
        )
    if joint and "position_ids" in micro:
        firsts = micro["firsts"][0]
        last = int((firsts >= 0).nonzero().max())  # 0 for a claim without evidence
        start = int(micro["position_ids"].flatten()[firsts[last]])
        if start != last * joint.slot_tokens:
            raise ValueError(f"slots of {joint.slot_tokens} tokens for this joint model, got slots of {start // last}")
    elif "token_type_ids" in micro and int(micro["token_type_ids"].max()) == 2 and getattr(model, "parts", 3) == 2:
        raise ValueError("the batches have a context, and the model reads two texts: start it with context=True")
