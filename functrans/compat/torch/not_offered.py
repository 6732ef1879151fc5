"""Names of torch that are not offered, and what to use in their place.

Here: the names by module and group, as data, and the error that names the way out. Not here: names
that are offered (the modules beside this one), the list of all of torch's names
(``docs/torch_names.json``).

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

GROUPS: dict[str, tuple[str, str]] = {
    "compiler": (
        "compilers, TorchScript and other internals",
        "programs are compiled by functrans.jit; PyTorch's own parts have no counterpart",
    ),
    "sparse": (
        "sparse and nested tensors",
        "tensors are dense, but for sparse_coo_tensor; use scipy.sparse beside them, or a mask",
    ),
    "quantization": (
        "quantization",
        "there are no quantized dtypes; tensors are floating, integer or bool",
    ),
    "distributed": ("distributed and multi-process work", "everything runs in one process"),
    "devices": ("CUDA and other devices", "functrans computes on the CPU"),
    "storage": (
        "storages and memory formats",
        "memory is that of ndarrays: use tensor.numpy(), tensor.copy_(...) or NumPy's strides",
    ),
    "dtypes": ("dtypes that NumPy lacks", "dtypes are NumPy's, and bfloat16"),
    "lazy": (
        "lazy modules",
        "give the numbers of input features to the plain modules: Linear(3, 5) for LazyLinear(5)",
    ),
    "duplicates": (
        "duplicates and renamed functions",
        "use the function of the plain name (no _copy, unsafe_, native_)",
    ),
    "rnn": (
        "recurrent functions",
        "use the modules torch.nn.RNN, LSTM, GRU and their cells",
    ),
    "rare": (
        "rarely used",
        "write it with other functions, or take values out with tensor.numpy()",
    ),
}
"""Group to its title, and what to do instead."""

INSTEAD: dict[str, str] = {
    "torch.hub": "fetch the file of weights yourself: torch.load reads it",
    "torch.signal": "use torch.hann_window and its kin, or scipy.signal",
    "torch.alias_copy": "use torch.clone",
    "torch.slice_copy": "use x[start:end].clone()",
    "torch.functional": "its functions are in torch itself",
    "torch.segment_reduce": "use x.scatter_reduce(...)",
    "torch.lu_unpack": "use torch.linalg.lu, whose factors are apart",
    "torch.Tensor.mvlgamma_": "use x.copy_(x.mvlgamma(p))",
    "torch.nn.Container": "use torch.nn.Module",
    "torch.nn.CrossMapLRN2d": "use torch.nn.LocalResponseNorm",
    "torch.nn.NLLLoss2d": "use torch.nn.NLLLoss",
    **dict.fromkeys(
        [f"torch.has_{name}" for name in ("lapack", "mkl", "openmp", "spectral")],
        "remove the question: all functions that are offered are always there",
    ),
    **{
        f"torch.nn.{name}": f"use torch.nn.{name}_"
        for name in (
            "utils.clip_grad_norm", "init.constant", "init.dirac", "init.eye",
            "init.kaiming_normal", "init.kaiming_uniform", "init.normal", "init.orthogonal",
            "init.sparse", "init.uniform", "init.xavier_normal", "init.xavier_uniform",
        )
    },
    "torch.nn.functional.linear_cross_entropy": "use cross_entropy(linear(x, weight), target)",
    "torch.nn.LinearCrossEntropyLoss": "use torch.nn.Linear and torch.nn.CrossEntropyLoss",
    **dict.fromkeys(
        [f"torch.utils.data.{name}DataPipe" for name in ("DFIter", "Iter", "Map")],
        "use torch.utils.data.Dataset or torch.utils.data.IterableDataset",
    ),
    "torch.lstsq": "use torch.linalg.lstsq",
    "torch.solve": "use torch.linalg.solve",
    "torch.eig": "use torch.linalg.eig",
    "torch.symeig": "use torch.linalg.eigh",
    "torch.matrix_rank": "use torch.linalg.matrix_rank",
    "torch.lu": "use torch.linalg.lu",
    **dict.fromkeys(
        ("torch.lu_solve", "torch.linalg.lu_solve", "torch.Tensor.lu_solve"),
        "use torch.linalg.solve(A, B) with the matrix itself",
    ),
    "torch.Tensor.lu": "use torch.linalg.lu",
    "torch.linalg.lu_factor": "use torch.linalg.lu, or torch.linalg.solve for solutions",
    "torch.linalg.lu_factor_ex": "use torch.linalg.lu, or torch.linalg.solve for solutions",
    "torch.Tensor.eig": "use torch.linalg.eig",
    "torch.Tensor.lstsq": "use torch.linalg.lstsq",
    "torch.Tensor.solve": "use torch.linalg.solve",
    "torch.Tensor.symeig": "use torch.linalg.eigh",
    "torch.Tensor.stft": "use torch.stft(x, ...)",
    "torch.Tensor.prelu": "use torch.nn.functional.prelu",
    "torch.Tensor.hardshrink": "use torch.nn.functional.hardshrink",
    "torch.Tensor.histogram": "use torch.histogram(x, ...)",
    "torch.Tensor.as_strided_scatter": "write y = x.clone(); y.as_strided(...).copy_(src)",
    "torch.frobenius_norm": "use torch.linalg.matrix_norm",
    "torch.grid_sampler": "use torch.nn.functional.grid_sample",
    "torch.affine_grid_generator": "use torch.nn.functional.affine_grid",
    "torch.svd_lowrank": "use torch.linalg.svd",
    "torch.pca_lowrank": "use torch.linalg.svd of the centred matrix",
    "torch.profiler": "use torch.autograd.profiler",
    "torch.cond": "use functrans.lax.cond in functions of arrays",
    "torch.while_loop": "use functrans.lax.while_loop in functions of arrays",
    "torch.utils.tensorboard": "import SummaryWriter of the package tensorboardX",
    "torch.optim.swa_utils": "average in no_grad: mean.lerp_(parameter, 1 / n)",
    "torch.nn.utils.weight_norm": "compute v * (g / v.norm(dim=1, keepdim=True)) in forward()",
    **dict.fromkeys(
        ("torch.nn.utils.parametrizations", "torch.nn.utils.parametrize"),
        "compute the weight from a parameter in forward()",
    ),
    "torch.nn.utils.spectral_norm": "divide by torch.linalg.matrix_norm(weight, 2) in forward()",
    **dict.fromkeys(
        [f"torch.nn.utils.remove_{name}_norm" for name in ("weight", "spectral")],
        "assign what forward() computes: layer.weight = torch.nn.Parameter(weight)",
    ),
    "torch.nn.utils.prune": "multiply the weight by a mask in forward()",
    "torch.nn.utils.skip_init": "make the module itself, and write its parameters in no_grad",
    "torch.nn.utils.stateless": "use torch.func.functional_call",
    "torch.optim.Muon": "use torch.optim.AdamW, or write a subclass of torch.optim.Optimizer",
    "torch.utils.benchmark": "use timeit of the standard library",
    "torch.utils.model_zoo": "fetch the file of weights yourself: torch.load reads it",
    "torch.nn.SyncBatchNorm": "use torch.nn.BatchNorm1d, 2d or 3d",
    "torch.optim.SparseAdam": "use torch.optim.Adam; gradients are dense",
    "torch.utils.data.DistributedSampler": "use a sampler of this process",
}  # fmt: skip
"""Qualified name to what to do instead, where there is something nearer than the group's."""

_NAMES: dict[str, dict[str, str]] = {
    "torch": {
        "compiler": (
            "AVG AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType "
            "BenchmarkConfig BenchmarkExecutionStats Block BoolType CallStack Capsule "
            "ClassType Code CompilationUnit CompleteArgumentSpec ComplexType "
            "ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable "
            "DeserializationStorageContext DeviceObjType DictType DisableTorchFunction "
            "DisableTorchFunctionSubclass DispatchKey DispatchKeySet EnumType ErrorReport "
            "ExcludeDispatchKeyGuard ExecutionPlan FatalError FileCheck FloatType "
            "FunctionSchema Future FutureType Gradient Graph GraphExecutorState IODescriptor "
            "InferredType IntType InterfaceType JITException ListType LiteScriptModule "
            "LockingLogger LoggerBase Node NoneType NoopLogger NumberType OperatorInfo "
            "OptionalType PRIVATE_OPS PyObjectType PyTorchFileReader PyTorchFileWriter SUM "
            "ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator "
            "ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator ScriptMethod "
            "ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty "
            "SerializationStorageContext StaticModule StringType SymBool SymBoolType SymFloat "
            "SymInt SymIntType Tag TensorType TracingState TupleType Type TypedStorage "
            "UnionType Use Value classes classproperty compiled_with_cxx11_abi "
            "compiler cond cpp export fx get_deterministic_debug_mode get_file_path "
            "hub import_ir_module import_ir_module_from_buffer "
            "init_num_threads library merge_type_from_type_comment monitor ops "
            "package parse_ir parse_schema parse_type_comment profiler "
            "serialization set_deterministic_debug_mode "
            "sym_constrain_range sym_constrain_range_for_size sym_float sym_fresh_size "
            "sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum thread_safe_generator "
            "torch_version unify_type_list while_loop windows"
        ),
        "sparse": (
            "ccol_indices_copy col_indices_copy crow_indices_copy hsmm hspmm "
            "indices_copy jagged masked nested resize_as_sparse_ row_indices_copy saddmm smm "
            "sparse_bsc sparse_bsc_tensor sparse_bsr sparse_bsr_tensor "
            "sparse_compressed_tensor sparse_coo sparse_csc "
            "sparse_csc_tensor sparse_csr sparse_csr_tensor sspaddmm values_copy"
        ),
        "quantization": (
            "ao choose_qparams_optimized dequantize empty_quantized "
            "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine "
            "fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation "
            "fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation "
            "fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 "
            "fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant int_repr "
            "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric "
            "per_tensor_affine per_tensor_symmetric q_per_channel_axis q_per_channel_scales "
            "q_per_channel_zero_points q_scale q_zero_point qint32 qint8 qscheme quantization "
            "quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic "
            "quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm "
            "quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d "
            "quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell quint2x4 "
            "quint4x2 quint8"
        ),
        "distributed": (
            "RRefType batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt "
            "batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats "
            "batch_norm_update_stats distributed fork futures is_distributed multiprocessing "
            "prepare_multiprocessing_environment wait"
        ),
        "devices": (
            "AcceleratorError Event OutOfMemoryError Stream StreamObjType "
            "ThroughputBenchmark accelerator autocast_decrement_nesting "
            "autocast_increment_nesting clear_autocast_cache cpu "
            "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution "
            "cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose "
            "cudnn_grid_sampler cudnn_is_acceptable get_autocast_cpu_dtype get_autocast_dtype "
            "get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype get_device "
            "get_device_module is_autocast_cache_enabled is_autocast_cpu_enabled "
            "is_autocast_enabled is_autocast_ipu_enabled is_autocast_xla_enabled "
            "is_vulkan_available miopen_batch_norm miopen_convolution "
            "miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose "
            "miopen_ctc_loss miopen_depthwise_convolution miopen_rnn "
            "mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights "
            "mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer mps mtia "
            "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 set_autocast_cache_enabled "
            "set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype "
            "set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype "
            "set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled xpu"
        ),
        "storage": (
            "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage "
            "ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage "
            "LongStorage QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage "
            "QUInt8Storage ShortStorage Storage StorageBase UntypedStorage empty_permuted "
            "from_file resize_as_ storage"
        ),
        "dtypes": (
            "BFloat16Tensor bit bits16 bits1x8 bits2x4 bits4x2 bits8 chalf complex32 "
            "float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
            "float8_e8m0fnu int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 "
            "uint6 uint7"
        ),
        "duplicates": (
            "alias_copy as_strided_copy detach_copy diagonal_copy eig expand_copy functional "
            "has_lapack has_mkl has_openmp has_spectral lstsq lu "
            "lu_solve lu_unpack matrix_rank narrow_copy native_batch_norm "
            "native_channel_shuffle native_dropout native_group_norm native_layer_norm "
            "native_norm permute_copy segment_reduce select_copy "
            "signal slice_copy solve split_copy split_with_sizes_copy "
            "squeeze_copy symeig t_copy transpose_copy unbind_copy unfold_copy "
            "unsqueeze_copy "
            "view_as_complex_copy view_as_real_copy view_copy"
        ),
        "rnn": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
        "rare": (
            "BufferDict ModuleDict ParameterDict affine_grid_generator alpha_dropout_ "
            "as_strided_scatter conv_tbc convolution "
            "dropout_ embedding_renorm_ feature_alpha_dropout_ feature_dropout "
            "feature_dropout_ frobenius_norm geqrf grid_sampler grid_sampler_2d "
            "grid_sampler_3d hash_tensor histogramdd is_anomaly_check_nan_enabled "
            "is_deterministic_algorithms_warn_only_enabled istft "
            "lobpcg nonzero_static norm_except_dim orgqr ormqr pca_lowrank "
            "set_anomaly_enabled "
            "slice_inverse svd_lowrank to_dlpack xlogy_"
        ),
    },
    "torch.Tensor": {
        "compiler": "reinforce",
        "sparse": (
            "ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced "
            "is_nested is_sparse_csr resize_as_sparse_ row_indices smm sparse_dim sparse_mask "
            "sparse_resize_ sparse_resize_and_clear_ sspaddmm to_padded_tensor "
            "to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr "
            "values"
        ),
        "quantization": (
            "dequantize int_repr q_per_channel_axis q_per_channel_scales "
            "q_per_channel_zero_points q_scale q_zero_point qscheme"
        ),
        "distributed": "is_distributed",
        "devices": (
            "ipu is_ipu is_maia is_mkldnn is_mtia is_vulkan is_xla is_xpu mtia record_stream "
            "to_mkldnn xpu"
        ),
        "storage": (
            "as_subclass const_data_ptr dim_order map2_ map_ module_load "
            "resize resize_as storage_type "
            ""
        ),
        "dtypes": "chalf",
        "duplicates": ("eig lstsq lu lu_solve mvlgamma_ narrow_copy solve symeig"),
        "rare": (
            "as_strided_scatter geqrf grad_dtype hardshrink hash_tensor histogram "
            "index istft nonzero_static orgqr ormqr prelu slice_inverse stft"
        ),
    },
    "torch.nn": {
        "compiler": (
            "LinearCrossEntropyLoss LinearCrossEntropyOptions common_types factory_kwargs"
        ),
        "quantization": "intrinsic qat quantizable quantized",
        "distributed": "SyncBatchNorm",
        "lazy": (
            "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d "
            "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d "
            "LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear UninitializedBuffer "
            "UninitializedParameter"
        ),
        "duplicates": "Container CrossMapLRN2d NLLLoss2d",
        "rare": "AdaptiveLogSoftmaxWithLoss FractionalMaxPool2d FractionalMaxPool3d grad",
    },
    "torch.nn.modules": {"lazy": "lazy"},
    "torch.nn.functional": {
        "compiler": "linear_cross_entropy",
        "quantization": "grouped_mm scaled_grouped_mm scaled_mm",
        "duplicates": "native_channel_shuffle",
        "rare": (
            "conv_tbc fractional_max_pool2d fractional_max_pool2d_with_indices "
            "fractional_max_pool3d fractional_max_pool3d_with_indices grad"
        ),
    },
    "torch.nn.init": {
        "sparse": "sparse",
        "duplicates": (
            "constant dirac eye kaiming_normal kaiming_uniform normal orthogonal uniform "
            "xavier_normal xavier_uniform"
        ),
    },
    "torch.nn.utils": {
        "storage": (
            "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format memory_format"
        ),
        "duplicates": "clip_grad_norm",
        "rare": (
            "fuse_conv_bn_eval fuse_conv_bn_weights "
            "fuse_linear_bn_eval fuse_linear_bn_weights fusion init parametrizations "
            "parametrize prune remove_spectral_norm remove_weight_norm skip_init spectral_norm "
            "stateless weight_norm"
        ),
    },
    "torch.optim": {
        "compiler": "swap_in_optimizer_params_and_state",
        "sparse": "SparseAdam",
        "rare": "Muon swa_utils",
    },
    "torch.autograd": {
        "compiler": (
            "ProfilerActivity ProfilerConfig ProfilerState SavedTensor "
            "enforce_grad_layout_policy is_view_replay_enabled profiler_legacy"
        ),
        "devices": "DeviceType ProfilerEvent kineto_available",
    },
    "torch.autograd.graph": {
        "compiler": "region_activation_memory_budget",
        "devices": (
            "set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch"
        ),
    },
    "torch.func": {
        "compiler": "functionalize rearrange",
        "rare": "replace_all_batch_norm_modules_",
    },
    "torch.overrides": {
        "compiler": (
            "enable_reentrant_dispatch get_ignored_functions get_overridable_functions "
            "get_testing_overrides redispatch_function"
        )
    },
    "torch.testing": {"rare": "FileCheck make_tensor"},
    "torch.jit": {
        "compiler": (
            "Attribute CompilationUnit Error Future ScriptFunction ScriptModule TracedModule "
            "enable_onednn_fusion fork freeze fuser last_executed_optimized_graph load "
            "onednn_fusion_enabled optimize_for_inference optimized_execution "
            "run_frozen_optimizations save set_fusion_strategy strict_fusion trace trace_module "
            "wait"
        )
    },
    "torch.nn.parallel": {
        "distributed": (
            "DistributedDataParallel comm data_parallel distributed gather parallel_apply "
            "replicate scatter scatter_gather"
        )
    },
    "torch.random": {"compiler": "thread_safe_generator"},
    "torch.sparse": {
        "sparse": (
            "SparseSemiStructuredTensor addmm as_sparse_gradcheck check_sparse_tensor_invariants "
            "log_softmax sampled_addmm semi_structured softmax spdiags spsolve sum "
            "to_sparse_semi_structured"
        )
    },
    "torch.types": {"storage": "Storage"},
    "torch.linalg": {
        "duplicates": "lu_solve",
        "rare": (
            "householder_product ldl_factor ldl_factor_ex ldl_solve lu_factor lu_factor_ex vander"
        ),
    },
    "torch.special": {"rare": "airy_ai"},
    "torch.fft": {"rare": "hfft2 hfftn ihfft2 ihfftn"},
    "torch.utils": {
        "compiler": "benchmark bottleneck cpp_extension mobile_optimizer serialization",
        "rare": (
            "backcompat collect_env deterministic dlpack flop_counter hooks model_zoo "
            "module_tracker show_pickle tensorboard weak"
        ),
    },
    "torch.utils.data": {
        "compiler": (
            "DFIterDataPipe IterDataPipe MapDataPipe argument_validation datapipes "
            "functional_datapipe guaranteed_datapipes_determinism non_deterministic "
            "runtime_validation runtime_validation_disabled"
        ),
        "distributed": "distributed",
        "rare": ("DataChunk DistributedSampler graph graph_settings "),
    },
}

NAMES: dict[str, dict[str, str]] = {
    module: {name: group for group, names in groups.items() for name in names.split()}
    for module, groups in _NAMES.items()
}
"""Torch's module to its names that are not offered, with their groups."""


def not_offered(module: str, name: str, own: str) -> AttributeError:
    """The error for a name that a module does not have.

    Args:
      module: torch's module.
      name: the name.
      own: the module that stands for it.

    Returns:
      An error that names the way out, if the name is one of torch's.

    Example:
      >>> print(not_offered("torch", "profiler", "functrans.compat.torch"))
      torch.profiler is not offered by functrans.compat.torch (compilers, TorchScript and other
      internals): use torch.autograd.profiler
      >>> print(not_offered("torch", "sinn", "functrans.compat.torch"))
      module 'functrans.compat.torch' has no attribute 'sinn'
    """
    group = NAMES.get(module, {}).get(name)
    if group is None:
        return AttributeError(f"module {own!r} has no attribute {name!r}", name=name)
    title, instead = GROUPS[group]
    instead = INSTEAD.get(f"{module}.{name}", instead)
    return AttributeError(
        f"{module}.{name} is not offered by functrans.compat.torch ({title}): {instead}", name=name
    )


def no_method(name: str) -> AttributeError | None:
    """The error for an attribute of tensors that is torch's and not offered; else ``None``."""
    is_known = name in NAMES["torch.Tensor"]
    return not_offered("torch.Tensor", name, "functrans.compat.torch") if is_known else None


def nothing_else(own: str) -> Callable[[str], Any]:
    """``__getattr__`` of a module that has no names beside those that it defines.

    Args:
      own: the module.
    """

    def refuse(name: str) -> Any:
        raise not_offered(own.removeprefix("functrans.compat."), name, own)

    return refuse
