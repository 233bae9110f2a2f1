package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// built is this test's own program, as if it were parley for a platform.
func built(t *testing.T, system, arch string, settings ...debug.BuildSetting) (program, error) {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	data, err := os.ReadFile(path)
	must(t, err)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no build information")
	}
	about := *info
	about.Settings = append([]debug.BuildSetting{
		{Key: "GOOS", Value: system}, {Key: "GOARCH", Value: arch}, {Key: "CGO_ENABLED", Value: "0"}, {Key: "-trimpath", Value: "true"}, {Key: "-tags", Value: "grpcnotrace"},
		{Key: "vcs.revision", Value: "c0ffee"}, {Key: "vcs.time", Value: "2026-11-26T10:00:00Z"},
	}, settings...)
	return newProgram("bin/"+system+"-"+arch+"/parley", data, &about)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestProgram: what was not built as deploy/build does it is refused.
func TestProgram(t *testing.T) {
	p, err := built(t, "linux", "arm64")
	must(t, err)
	if p.commit != "c0ffee" || p.base("1.2.3") != "parley-1.2.3-linux-arm64" {
		t.Errorf("the program is %s of %s", p.base("1.2.3"), p.commit)
	}
	for _, c := range []struct{ key, value, want string }{
		{"CGO_ENABLED", "1", "CGO_ENABLED=1"},
		{"-trimpath", "false", "-trimpath=false"},
		{"-tags", "", "-tags="},
		{"vcs.time", "", "names no commit"},
		{"GOARCH", "amd64", "is of linux-amd64"},
	} {
		if _, err := built(t, "linux", "arm64", debug.BuildSetting{Key: c.key, Value: c.value}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %q", c.key, c.value, err, c.want)
		}
	}
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}, {Key: "CGO_ENABLED", Value: "0"}, {Key: "-trimpath", Value: "true"}, {Key: "-tags", Value: "grpcnotrace"},
		{Key: "vcs.revision", Value: "c0ffee"}, {Key: "vcs.time", Value: "2026-11-26T10:00:00Z"},
	}}
	if _, err := newProgram("linux-arm64/parley", make([]byte, mostBytes+1), info); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a program that is too large: %v", err)
	}
}

// TestArchives: an archive has the files with their modes, the time of the commit, and the same bytes again.
func TestArchives(t *testing.T) {
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.FixedZone("", 3600))
	files := []file{{name: "parley", mode: 0o755, data: []byte("program")}, {name: "man/parley.1", mode: 0o644, data: []byte("page")}}
	for name, make := range map[string]func([]file, time.Time) ([]byte, error){"tar": gzipped, "zip": zipped} {
		data, err := make(files, at)
		must(t, err)
		again, err := make(files, at.UTC())
		must(t, err)
		if !bytes.Equal(data, again) {
			t.Errorf("%s: other bytes in another time zone", name)
		}
	}
	data, err := gzipped(files, at)
	must(t, err)
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	must(t, err)
	first, err := tar.NewReader(unzipped).Next()
	must(t, err)
	if first.Name != "parley" || first.Mode != 0o755 || !first.ModTime.Equal(at) || first.Uid != 0 {
		t.Errorf("the first file of the tar is %+v", first)
	}
	data, err = zipped(files, at)
	must(t, err)
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	if f := z.File[0]; f.Name != "parley" || f.Mode().Perm() != 0o755 || !f.Modified.Equal(at) {
		t.Errorf("the first file of the zip is %+v", f.FileHeader)
	}
}

// TestBOM: the SBOM has the program with its hash, each of its modules, and Go; and the same bytes again.
func TestBOM(t *testing.T) {
	p, err := built(t, "linux", "amd64")
	must(t, err)
	data, err := bom(p, "1.2.3")
	must(t, err)
	again, err := bom(p, "1.2.3")
	must(t, err)
	if !bytes.Equal(data, again) {
		t.Error("the SBOM differs the second time")
	}
	var list cdx.BOM
	must(t, cdx.NewBOMDecoder(bytes.NewReader(data), cdx.BOMFileFormatJSON).Decode(&list))
	about := list.Metadata.Component
	if want := fmt.Sprintf("%x", sha256.Sum256(p.data)); (*about.Hashes)[0].Value != want || about.Version != "1.2.3" || list.Metadata.Timestamp != "2026-11-26T10:00:00Z" {
		t.Errorf("the SBOM is of %+v at %s", about, list.Metadata.Timestamp)
	}
	named := map[string]string{}
	for _, c := range *list.Components {
		named[c.Name] = c.PackageURL
	}
	if len(named) != len(p.info.Deps)+1 || !strings.HasPrefix(named["std"], "pkg:golang/std@1.") || !strings.HasPrefix(named["github.com/google/uuid"], "pkg:golang/github.com/google/uuid@v1.") {
		t.Errorf("the SBOM has %v", named)
	}
}

// TestImage reads the tar back: an image for each Linux program, whose configuration runs it as nobody, with two
// layers; and the same bytes again.
func TestImage(t *testing.T) {
	t.Chdir("../..") // licences
	var programs []program
	for _, arch := range []string{"amd64", "arm64"} {
		p, err := built(t, "linux", arch)
		must(t, err)
		p.info = &debug.BuildInfo{GoVersion: p.info.GoVersion} // this test's modules are not those of the module at the top
		programs = append(programs, p)
	}
	windows := programs[0]
	windows.os = "windows"
	programs = append(programs, windows)
	dir := t.TempDir()
	out := filepath.Join(dir, "image.tar")
	must(t, writeImage(programs, out, "1.2.3"))
	data, err := os.ReadFile(out)
	must(t, err)
	again := filepath.Join(dir, "again.tar")
	must(t, writeImage(programs, again, "1.2.3"))
	if second, err := os.ReadFile(again); err != nil || !bytes.Equal(data, second) {
		t.Errorf("the image differs the second time (%v)", err)
	}

	unpack(t, data, filepath.Join(dir, "layout"))
	top, err := layout.ImageIndexFromPath(filepath.Join(dir, "layout"))
	must(t, err)
	must(t, validate.Index(top))
	manifest, err := top.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["io.containerd.image.name"] != "parley:1.2.3" {
		t.Fatalf("the layout names %+v", manifest.Manifests)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	must(t, err)
	manifest, err = index.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) != 2 {
		t.Fatalf("%d images, want 2", len(manifest.Manifests))
	}
	for i, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		must(t, err)
		if want := programs[i].arch; d.Platform.Architecture != want || d.Platform.OS != "linux" {
			t.Errorf("image %d is for %s, want linux/%s", i, d.Platform, want)
		}
		inspect(t, image, programs[i])

		tag, err := name.NewTag([]string{"parley:1.2.3", "parley:1.2.3-arm64"}[i])
		must(t, err)
		loaded, err := tarball.ImageFromPath(out, &tag) // as docker load reads it
		must(t, err)
		must(t, validate.Image(loaded))
		inspect(t, loaded, programs[i])
	}
}

func inspect(t *testing.T, image v1.Image, p program) {
	t.Helper()
	c, err := image.ConfigFile()
	must(t, err)
	if c.Architecture != p.arch || c.OS != "linux" || !c.Created.Equal(p.time) {
		t.Errorf("the image is %s/%s of %s", c.OS, c.Architecture, c.Created)
	}
	if c.Config.User != "65532:65532" || strings.Join(c.Config.Entrypoint, " ") != "/usr/bin/parley" || c.Config.Cmd[0] != "serve" {
		t.Errorf("it runs %q %q as %q", c.Config.Entrypoint, c.Config.Cmd, c.Config.User)
	}
	if _, volume := c.Config.Volumes["/data"]; !volume || c.Config.Labels["org.opencontainers.image.revision"] != "c0ffee" {
		t.Errorf("its configuration is %+v", c.Config)
	}
	layers, err := image.Layers()
	must(t, err)
	if len(layers) != 2 {
		t.Fatalf("%d layers, want 2", len(layers))
	}
	found := map[string]*tar.Header{}
	for _, l := range layers {
		content, err := l.Uncompressed()
		must(t, err)
		for r := tar.NewReader(content); ; {
			header, err := r.Next()
			if err == io.EOF {
				break
			}
			must(t, err)
			if !header.ModTime.Equal(p.time) {
				t.Errorf("%s is of %s", header.Name, header.ModTime)
			}
			text, err := io.ReadAll(r)
			must(t, err)
			switch header.Name {
			case "usr/bin/parley":
				if !bytes.Equal(text, p.data) {
					t.Error("the program in the image is another")
				}
			case "etc/ssl/certs/ca-certificates.crt":
				if !x509.NewCertPool().AppendCertsFromPEM(text) || bytes.Count(text, []byte("BEGIN")) < 50 {
					t.Errorf("the CA certificates are %d bytes", len(text))
				}
			}
			found[header.Name] = header
		}
	}
	for name, mode := range map[string]int64{"usr/bin/parley": 0o555, "data/": 0o700, "tmp/": 0o1777, "etc/ssl/certs/ca-certificates.crt": 0o444, "usr/share/doc/parley/LICENSE": 0o444} {
		if found[name] == nil || found[name].Mode != mode {
			t.Errorf("%s is %+v, want mode %o", name, found[name], mode)
		}
	}
	if data := found["data/"]; data != nil && (data.Uid != user || data.Gid != user) {
		t.Errorf("/data belongs to %d:%d", data.Uid, data.Gid)
	}
}

func unpack(t *testing.T, data []byte, dir string) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := r.Next()
		if err == io.EOF {
			return
		}
		must(t, err)
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		text, err := io.ReadAll(r)
		must(t, err)
		must(t, os.WriteFile(path, text, 0o600))
	}
}
