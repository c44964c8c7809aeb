"""Small numbers for the settings of configurations, by their names, and what single types need beyond them."""

def _each(names, size):
    return dict.fromkeys(names.split(), size)

SIZES = (
    _each("""hidden_size d_model n_embd dim embed_dim encoder_hidden_size decoder_hidden_size out_hidden_size
        text_hidden_size projection_dim emb_dim embedding_size hidden_dim text_embed_dim audio_hidden_size
        encoder_hidden_dim output_dim word_embed_proj_dim vision_hidden_size projector_hidden_size embedding_dim
        qformer_hidden_size fusion_hidden_size fpn_hidden_size output_hidden_size speaker_embedding_dim
        hidden_size_per_layer_input bottleneck_size d_embed patch_embed_hidden_size backbone_hidden_size feature_size
        attention_hidden_size hidden_size_global pooler_output_size
        vision_output_dim adapter_out_dim projection_hidden_dim lm_hidden_size rnn_hidden_size""", 32)
    | _each("""num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers depth
        num_encoder_layers encoder_num_layers decoder_num_layers decoder_num_hidden_layers encoder_num_hidden_layers
        num_blocks max_window_layers resampler_depth num_residual_layers layers
        num_layers_encoder num_depth_layers""", 2)
    | _each("""num_attention_heads num_heads n_head n_heads encoder_attention_heads decoder_attention_heads
        attention_heads encoder_num_attention_heads decoder_num_attention_heads linear_num_value_heads n_heads_vision
        swa_num_attention_heads index_n_heads resampler_n_heads linear_num_heads linear_num_key_heads""", 4)
    | _each("num_key_value_heads swa_num_key_value_heads n_head_kv num_kv_heads encoder_num_key_value_heads decoder_num_key_value_heads", 2)
    | _each("""head_dim d_kv qk_nope_head_dim v_head_dim kv_lora_rank q_lora_rank linear_key_head_dim
        linear_value_head_dim swa_head_dim d_head index_head_dim kv_channels resampler_head_dim linear_head_dim dim_head head_size
        attention_head_size""", 8)
    | _each("qk_rope_head_dim rotary_dim rope_head_dim", 8)
    | {"qk_head_dim": 16, "intermediate_size_mlp": 64, "d_model_ffn": 64}
    | _each("""intermediate_size encoder_ffn_dim decoder_ffn_dim ffn_dim mlp_dim d_ff d_inner n_inner ffn_hidden_size
        shared_expert_intermediate_size shared_intermediate_size inner_dim hidden_dim_ffn decoder_intermediate_size
        ffn_intermediate_size block_ff_dim expert_ffn_size mlp_hidden_size encoder_intermediate_size
        dense_intermediate_size hidden_mlp_size moe_shared_expert_intermediate_size linear_units""", 64)
    | _each("moe_intermediate_size expert_intermediate_size", 16)
    | _each("""vocab_size text_vocab_size vocab_size_per_layer_input audio_vocab_size codec_vocab_size input_vocab_size output_vocab_size
        src_vocab_size tgt_vocab_size pad_vocab_size d_vocab entity_vocab_size unpadded_vocab_size
        n_vocab text_config_vocab_size encoder_vocab_size decoder_vocab_size""", 97)
    | _each("""max_position_embeddings n_positions max_seq_len seq_length n_ctx max_source_positions max_sequence_length
        max_target_positions max_seq_length context_length""", 64)
    | _each("num_experts num_local_experts n_routed_experts moe_num_experts num_routed_experts", 4)
    | _each("num_experts_per_tok moe_topk moe_k num_experts_per_token experts_per_token top_k", 2)
    | _each("n_group topk_group", 1)
    | _each("attention_chunk_size sliding_window sliding_window_size attention_window local_attention window_size", 8)
    | _each("image_size", 32)
    | _each("conv_dim conv_channels subsampling_conv_channels decoder_dim upsample_initial_channel", 32)
    | _each("mamba_d_state ssm_state_size state_size", 8)
    | _each("mamba_n_heads mamba_num_heads", 8)
    | _each("mamba_d_head mamba_head_dim", 8)
    | _each("lru_width", 32)
    | _each("num_conv_pos_embeddings", 16) | _each("num_conv_pos_embedding_groups", 2)
    | _each("classifier_proj_size xvector_output_dim codevector_dim proj_codevector_dim", 32)
    | _each("codebook_size num_embeddings", 64)
    | _each("base_channels", 32)
    | _each("num_filters upsample_groups num_groups", 8)
    | _each("first_k_dense_replace", 1)
)
# lists: each number becomes this
LISTS = {"depths": 1, "hidden_sizes": 32, "embed_dim": 32, "num_groups": 2, "stage_num_blocks": 1, "stage_numb_of_layers": 1, "num_block_repeats": 1, "blocks_per_stage": 1,
    "embed_dim_per_stage": 32, "num_attention_heads_per_stage": 2, "depth": 1, "num_blocks": 1, "num_heads": 2}
IDS = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 2, "sep_token_id": 3, "cls_token_id": 2, "mask_token_id": 0, "unk_token_id": 0, "forced_eos_token_id": 3, "forced_bos_token_id": 2}

FILL = {"head_dim": 8, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "vocab_size": 97}
ROPE = {"mrope_section": [2, 1, 1], "original_max_position_embeddings": 32}
SHARPNESS = dict.fromkeys("gemma4 gemma4_text gemma4_unified gemma4_unified_text embedding_gemma2 embedding_gemma2_text gemma3n_text gemma4_assistant".split(), 0.5) | {"recurrent_gemma": 4.0, "beam": 0.8, "roc_bert": 40.0, "mobilebert": 40.0, "minicpm3": 6.0,"t5": 1.0, "mt5": 1.0, "umt5": 1.0}

_MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}}
_TEXT = {"text_config": _MROPE}
_HALF = {"rope_parameters": _MROPE["rope_parameters"] | {"mrope_section": [1, 1, 0], "partial_rotary_factor": 0.5}}
_GLOBAL_16 = {"global_head_dim": 16, "layer_types": ["sliding_attention", "full_attention"], "num_hidden_layers": 2}
_INDEXER = dict(indexer_n_heads=4, indexer_kv_heads=1, indexer_head_dim=8, indexer_budget=8, indexer_compress_ratio=2, ngram_vocab_size_base=97, split_ngram_parts=1, hc_lowrank=8)
_DOTS = dict(num_hidden_layers=3, num_key_value_heads=4, head_dim=16, swa_num_attention_heads=4, swa_num_key_value_heads=4, swa_q_lora_rank=8, swa_kv_lora_rank=8,
    swa_head_dim=16, swa_qk_nope_head_dim=8, swa_v_head_dim=8, shared_experts_intermediate_size=16)
_AUTO = {"from": {"prediction_length": 4}}

EXTRAS = {
    "autoformer": _AUTO, "informer": _AUTO, "time_series_transformer": _AUTO,
    "bamba": {"attn_layer_indices": [1], "num_hidden_layers": 2},
    "bridgetower": {"hidden_size": 64, "text_config": {"hidden_size": 64}, "vision_config": {"hidden_size": 64}},
    "blt": {"encoder_hash_byte_group_vocab": 50},
    "cohere_compass_text": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}},
    "cohere_compass": {"text_config": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}}},
    "dory": {"num_hidden_layers": 3, "n_input_layers": 1, "n_recurrent_layers": 1, "n_output_layers": 1},
    "dots3_note": {"text_config": _DOTS},
    "dots3_note_text": _DOTS,
    "pix2struct_text_model": {"initializer_range": 0.02},
    "t5gemma2_encoder": {"text_config": {"dropout_rate": 0.0}},
    "qwen3_omni_moe": {"talker_config": {"text_config": {"shared_expert_intermediate_size": 64}}},
    "granite4_vision": {"deepstack_layer_map": [[0, 0]], "downsample_rate": "2/4", "text_config": {"hidden_size": 64}, "vision_config": {"hidden_size": 64}},
    "esmc": {"num_key_value_heads": 4},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_d_head": 8},
    "gemma3n_text": {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"], "num_kv_shared_layers": 0, "activation_sparsity_pattern": [0.0, 0.0], "intermediate_size": 64},
    "gemma4_text": _GLOBAL_16 | {"hidden_size_per_layer_input": 8},
    "gemma4_assistant": {"from": {"text_config": {"model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, "num_hidden_layers": 2, "num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}}},
    "glm4v_text": _HALF, "glm4v": {"text_config": _HALF}, "glm46v": {"text_config": _HALF}, "glm_ocr": {"text_config": _HALF}, "glm_ocr_text": _HALF,
    "glm_image": {"text_config": _HALF}, "glm_image_text": _HALF, "glmga": {"text_config": _HALF},
    "glm4v_moe_text": _HALF, "glm4v_moe": {"text_config": _HALF},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "num_layers": 2, "window_size": 4, "attention_layers": "derived"},
    "granite_speech5_ctc": {"encoder_config": {"context_size": 32}},
    "granite_speech5_encoder": {"context_size": 32},
    "jamba": {"num_hidden_layers": 2, "attn_layer_period": 2, "attn_layer_offset": 1},
    "lfm2_moe": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "longcat_flash": {"zero_expert_num": 2, "expert_ffn_hidden_size": 16},
    "mamba2": {"num_heads": 8, "n_groups": 1},
    "neomme": {"head_dim": 16},
    "paddleocr_vl": _TEXT, "paddleocr_vl_text": _MROPE, "qwen2_vl": _TEXT, "qwen2_vl_text": _MROPE, "qwen2_5_vl": _TEXT, "qwen2_5_vl_text": _MROPE,
    "qwen2_5_omni_thinker": _TEXT,
    "recurrent_gemma": {"num_hidden_layers": 3},
    "reformer": {"axial_pos_embds_dim": [16, 16], "axial_pos_shape": [8, 8], "attn_layers": ["local", "lsh"], "is_decoder": True, "lsh_attn_chunk_length": 4, "local_attn_chunk_length": 4, "num_buckets": 2},
    "zamba": {"num_hidden_layers": 5, "layers_block_type": ["mamba", "mamba", "hybrid", "mamba", "hybrid"]},
    "apertus1p5": {"audio_config": {"codebook_dim": 32}, "image_token_offset": 97, "audio_token_offset": 161, "text_config": {"vocab_size": 256}},
    "bit": {"num_groups": 8, "embedding_size": 32},
    "cvt": {"depth": [1, 2, 3]},
    "depth_pro": {"image_model_config": {"image_size": 384}, "patch_model_config": {"image_size": 384}, "fov_model_config": {"image_size": 384}},
    "dots3_note_audio_encoder": {"adapter_input_size": 32},
    "fun_asr_nano": {"adaptor_config": {"intermediate_size": 8}},
    "gemma4_unified_assistant": {"text_config": {"num_hidden_layers": 2, "num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}},
    "glpn": {"num_attention_heads": [1, 2, 4, 8]},
    "gradium_phonon_tts": {"flow_head_config": {"condition_dim": 32}},
    "pocket_tts": {"flow_head_config": {"condition_dim": 32}},
    "lw_detr_vit": {"num_windows": 4}, "lw_detr": {"backbone_config": {"num_windows": 4}},
    "molmo2": {"adapter_config": {"vision_feature_layer": [1, 0]}},
    "pvt": {"num_attention_heads": [1, 2, 4, 8]}, "pvt_v2": {"num_attention_heads": [1, 2, 4, 8]},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 64},
    "wavtokenizer": {"codebook_dim": 32}, "wavtokenizer_encoder": {"codebook_dim": 32},
    "xmod": {"default_language": "en_XX"},
    "granitemoehybrid": {"num_hidden_layers": 2, "layer_types": ["mamba", "attention"], "mamba_n_heads": 8, "mamba_d_head": 8},
    "hrm_text": {"num_layers_per_stack": "derived", "num_hidden_layers": 1},
    "esm": {"pad_token_id": 1, "mask_token_id": 0},
    "lilt": {"hidden_size": 48},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4},
    "nemotron": {"num_key_value_heads": 2},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8.0}},
    "chameleon": {"vocabulary_map": {"<image>": 91}, "vq_config": {"base_channels": 32, "latent_channels": 32}},
    "emu3": {"vocabulary_map": {"<image>": 91}, "vq_config": {"base_channels": 32}},
    "diffusion_gemma": {"text_config": _GLOBAL_16 | {"top_k_experts": 2, "num_experts": 4, "moe_intermediate_size": 16}},
    "diffusion_gemma_text": _GLOBAL_16 | {"top_k_experts": 2, "num_experts": 4, "moe_intermediate_size": 16},
    "qwen4_exp_text": _INDEXER, "qwen4_exp": {"text_config": _INDEXER},
    "ernie4_5_vl_moe_text": {"head_dim": 8, "rope_parameters": _MROPE["rope_parameters"] | {"mrope_section": [1, 1, 2]}},
    "ernie4_5_vl_moe": {"text_config": {"rope_parameters": _MROPE["rope_parameters"] | {"mrope_section": [1, 1, 2]}}},
    "moonshine_streaming": {"num_key_value_heads": 4, "encoder_config": {"num_key_value_heads": 4}},
    "deepseek_ocr2": {"text_config": {"mlp_layer_types": ["dense", "sparse"]}},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse"]},
    "perceiver": {"d_latents": 32, "num_latents": 8, "num_self_attends_per_block": 1, "num_self_attention_heads": 4, "num_cross_attention_heads": 4, "image_size": 8, "train_size": [8, 8], "output_shape": [1, 2, 8, 8]},
    "zamba2": {"num_hidden_layers": 2, "layers_block_type": ["mamba", "hybrid"], "n_mamba_heads": 4},
}
