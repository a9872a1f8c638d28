// cudarc and nvml-wrapper on a simulated machine: memory, a kernel, a captured graph, NVML. One fact
// a line; rust_check.py knows what they should be.
use cudarc::driver::sys::CUgraphInstantiate_flags;
use cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use nvml_wrapper::Nvml;

const PTX: &str = ".version 7.0
.target sm_50
.address_size 64
.visible .entry aliquot_add(.param .u64 to, .param .u64 a, .param .u64 b, .param .u64 words) { ret; }
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("gpus {}", CudaContext::device_count()?);
    let context = CudaContext::new(0)?;
    println!("name {}", context.name()?);
    println!("capability {:?}", context.compute_capability()?);
    let stream = context.new_stream()?;
    let module = context.load_module(Ptx::from_src(PTX))?;
    let add = module.load_function("aliquot_add")?;

    let words = 1024u64;
    let ones = stream.clone_htod(&vec![1u32; words as usize])?;
    let mut sum = stream.alloc_zeros::<u32>(words as usize)?;
    let shape = LaunchConfig::for_num_elems(words as u32);
    let first = unsafe { cudarc::driver::result::malloc_sync(4096)? };
    unsafe { cudarc::driver::result::free_sync(first)? };
    let (sum_at, ones_at) = {
        use cudarc::driver::{DevicePtr, DevicePtrMut};
        let (sum_at, _a) = sum.device_ptr_mut(&stream);
        let (ones_at, _b) = ones.device_ptr(&stream);
        (sum_at, ones_at)
    };
    unsafe {
        stream.launch_builder(&add).arg(&sum_at).arg(&sum_at).arg(&ones_at).arg(&words).launch(shape)?
    };
    stream.begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    unsafe {
        stream.launch_builder(&add).arg(&sum_at).arg(&sum_at).arg(&ones_at).arg(&words).launch(shape)?
    };
    let graph = stream
        .end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)?
        .expect("an empty graph");
    for _ in 0..3 {
        graph.launch()?;
    }
    let out = stream.clone_dtoh(&sum)?;
    println!("sums {} {}", out[0], out[words as usize - 1]);

    let nvml = Nvml::init()?;
    println!("driver {}", nvml.sys_driver_version()?);
    let gpu = nvml.device_by_index(0)?;
    let memory = gpu.memory_info()?;
    println!("nvml {} {}", gpu.name()?, memory.total);
    println!("processes {}", gpu.running_compute_processes()?.len());
    println!("power {} of {}", gpu.power_usage()? > 0, gpu.enforced_power_limit()?);
    Ok(())
}
