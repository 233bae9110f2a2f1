package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

const module = "github.com/parley-asp/parley"

// bom lists the modules in a program, as its build information has them, and Go's own library.
func bom(p program, version string) ([]byte, error) {
	sum := sha256.Sum256(p.data)
	about := cdx.Component{
		Type: cdx.ComponentTypeApplication, Name: "parley", Version: version, BOMRef: purl(module, version),
		PackageURL: purl(module, version) + "?goos=" + p.os + "&goarch=" + p.arch,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Properties: &[]cdx.Property{{Name: "vcs.revision", Value: p.commit}},
	}
	components := []cdx.Component{library("std", strings.TrimPrefix(p.info.GoVersion, "go"))}
	for _, dep := range p.info.Deps {
		dep = used(dep)
		component := library(dep.Path, dep.Version)
		if hash, ok := strings.CutPrefix(dep.Sum, "h1:"); ok {
			raw, err := base64.StdEncoding.DecodeString(hash)
			if err != nil {
				return nil, fmt.Errorf("the sum of %s: %w", dep.Path, err)
			}
			component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
		}
		components = append(components, component)
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	list := cdx.NewBOM()
	list.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, sum[:]).URN()
	list.Metadata = &cdx.Metadata{Timestamp: p.time.UTC().Format(time.RFC3339), Component: &about}
	list.Components = &components
	list.Dependencies = &[]cdx.Dependency{{Ref: about.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(list)
	return out.Bytes(), err
}

// used is the module that was built in place of dep.
func used(dep *debug.Module) *debug.Module {
	for dep.Replace != nil {
		dep = dep.Replace
	}
	return dep
}

func library(path, version string) cdx.Component {
	url := purl(path, version)
	return cdx.Component{Type: cdx.ComponentTypeLibrary, Name: path, Version: version, BOMRef: url, PackageURL: url}
}

func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|notice|copying|patents)([._-].*)?$`)

// licences are the texts that the modules in a program ask to be passed on, and Go's own.
func licences(info *debug.BuildInfo) ([]byte, error) {
	dirs := map[string]string{}
	list := exec.Command("go", "list", "-m", "-json", "all")
	list.Stderr = os.Stderr
	data, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(data)); decoder.More(); {
		var m struct{ Path, Dir string }
		if err := decoder.Decode(&m); err != nil {
			return nil, err
		}
		dirs[m.Path] = m.Dir
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	dirs["Go"] = strings.TrimSpace(string(root))
	var out bytes.Buffer
	for _, dep := range append([]*debug.Module{{Path: "Go", Version: info.GoVersion}}, info.Deps...) {
		dep = used(dep)
		entries, err := os.ReadDir(dirs[dep.Path])
		if err != nil {
			return nil, fmt.Errorf("the licence of %s: %w", dep.Path, err)
		}
		found := false
		for _, entry := range entries {
			if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dirs[dep.Path], entry.Name()))
			if err != nil {
				return nil, err
			}
			found = true
			fmt.Fprintf(&out, "==== %s %s: %s\n\n%s\n\n", dep.Path, dep.Version, entry.Name(), bytes.TrimSpace(text))
		}
		if !found {
			return nil, fmt.Errorf("%s has no licence", dep.Path)
		}
	}
	return out.Bytes(), nil
}
