// Command gen writes the Go code of MACP's messages and service, in gateway/macp/pb, from
// the .proto files beside it. They are those of PyPI's macp-proto 0.1.13, which has them
// as descriptors, without the RPCs that the gateway does not serve and the messages that
// only those have: the server answers them UNIMPLEMENTED, as any that it does not know. The
// compiler and the plugins are pinned in go.mod and tools/go.mod.
package main

import (
	"bytes"
	"context"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// dir has the .proto files, and gets the code.
const dir = "pb"

// files are in the order of their imports.
var files = []string{
	"macp/v1/envelope.proto", "macp/v1/policy.proto", "macp/v1/core.proto", "macp/modes/proposal/v1/proposal.proto",
}

func main() {
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

func generate() error {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{dir}}}
	compiled, err := compiler.Compile(context.Background(), files...)
	if err != nil {
		return err
	}
	parameter := "paths=source_relative"
	described := make([]*descriptorpb.FileDescriptorProto, len(files))
	for i, file := range compiled {
		described[i] = protoutil.ProtoFromFileDescriptor(file)
		parameter += ",M" + files[i] + "=github.com/parley-asp/parley/gateway/macp/pb"
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, ProtoFile: described, Parameter: &parameter}
	messages, err := messages(request)
	if err != nil {
		return err
	}
	service, err := service(request)
	if err != nil {
		return err
	}
	for _, f := range append(messages.GetFile(), service.GetFile()...) {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f.GetName())), []byte(f.GetContent()), 0o644); err != nil { //nolint:gosec // source
			return err
		}
	}
	return nil
}

// messages are what protoc-gen-go makes of the request.
func messages(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return nil, err
	}
	for _, f := range plugin.Files {
		internal_gengo.GenerateFile(plugin, f)
	}
	return plugin.Response(), nil
}

// service is what protoc-gen-go-grpc makes of the request.
func service(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	asked, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	plugin := exec.Command("go", "tool", "-modfile=../../tools/go.mod", "protoc-gen-go-grpc")
	plugin.Stdin, plugin.Stderr = bytes.NewReader(asked), os.Stderr
	answer, err := plugin.Output()
	if err != nil {
		return nil, err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	return response, proto.Unmarshal(answer, response)
}
