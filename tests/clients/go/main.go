// What NVIDIA's own Kubernetes parts ask of NVML, by the modules that they ask with. One fact a
// line; go_check.py knows what they should be.
package main

import (
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func check(what string, result nvml.Return) {
	if result != nvml.SUCCESS {
		fmt.Fprintf(os.Stderr, "%s: %s\n", what, nvml.ErrorString(result))
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	library := nvml.New()
	check("init", library.Init())
	defer library.Shutdown()
	version, result := library.SystemGetDriverVersion()
	check("driver version", result)
	fmt.Println("driver", version)
	cuda, result := library.SystemGetCudaDriverVersion()
	check("CUDA version", result)
	fmt.Println("cuda", cuda)

	devices := device.New(library)
	all := must(devices.GetDevices())
	fmt.Println("gpus", len(all))
	for i, gpu := range all {
		name, result := gpu.GetName()
		check("name", result)
		memory, result := gpu.GetMemoryInfo_v2()
		check("memory", result)
		fmt.Println("gpu", i, name, memory.Total, must(gpu.GetCudaComputeCapabilityAsString()),
			must(gpu.GetArchitectureAsString()), must(gpu.IsMigCapable()), must(gpu.IsMigEnabled()))
	}
	for _, profile := range must(devices.GetMigProfiles()) {
		fmt.Println("profile", profile)
	}
}
