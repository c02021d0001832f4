"""Directives of contextual inputs."""

import re


def test_parameters_of_the_backbones_are_those_that_transformers_makes(directives):
    as2_contexts = directives("as2_contexts")
    import torch
    from transformers import ElectraConfig, ElectraModel, RobertaConfig, RobertaModel

    base = {"embedding_size": 768, "num_hidden_layers": 12}
    large = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
    with torch.device("meta"):
        made = [
            RobertaModel(RobertaConfig(max_position_embeddings=514, type_vocab_size=1), add_pooling_layer=False),
            ElectraModel(ElectraConfig(**base, hidden_size=256, num_attention_heads=4, intermediate_size=1024)),
            ElectraModel(ElectraConfig(**base, **large)),
        ]
        three = RobertaModel(RobertaConfig(max_position_embeddings=514, type_vocab_size=3), add_pooling_layer=False)
    counted = [sum(parameter.numel() for parameter in model.parameters()) for model in (*made, three)]
    cells = re.findall(r'"row">([^<]*)</th><td class="as2-number">([^<]*)</td><td class="as2-number">([^<]*)<', as2_contexts.parameters())
    assert [ours for _, ours, _ in cells[:3]] == [f"{count:,}" for count in counted[:3]]
    assert [theirs for _, _, theirs in cells[:3]] == ["124 M", "33 M", "108 M"]
    assert cells[3][1] == f"{counted[3] - counted[0]:,}"
    assert [count // 10**6 for count in counted[:3]] == [124, 33, 108]
