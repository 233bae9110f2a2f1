package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is whom the image runs as: nobody that a host has.
const user = 65532

// writeImage writes an OCI layout as a tar, with an image for each Linux program: an empty base, the certificates
// of public CAs, and the program. Only /data and /tmp are written to, so the root can be read-only. Its
// manifest.json is for Docker without containerd's image store, which loads no OCI layout.
func writeImage(programs []program, out, version string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var docker tarball.Manifest
	for _, p := range programs {
		if p.os != "linux" {
			continue
		}
		image, err := imageOf(p, version)
		if err != nil {
			return err
		}
		tag := "parley:" + version
		if p.arch != "amd64" {
			tag += "-" + p.arch
		}
		described, err := descriptor(image, tag)
		if err != nil {
			return err
		}
		docker = append(docker, described)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}})
	}
	if manifest, err := index.IndexManifest(); err != nil || len(manifest.Manifests) == 0 {
		return errors.Join(err, errors.New("an image needs a program for Linux"))
	}
	name := map[string]string{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "parley:" + version}
	top := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: name}})
	dir, err := os.MkdirTemp("", "parley-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if _, err := layout.Write(dir, top); err != nil {
		return err
	}
	files, err := read(dir)
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(docker)
	if err != nil {
		return err
	}
	files = append([]file{{name: "manifest.json", mode: 0o644, data: manifest}}, files...)
	data, err := tarred(files, programs[0].time)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o644)
}

// descriptor names an image's blobs in the layout, as `docker save` does.
func descriptor(image v1.Image, tag string) (tarball.Descriptor, error) {
	const blobs = "blobs/sha256/"
	config, err := image.ConfigName()
	if err != nil {
		return tarball.Descriptor{}, err
	}
	layers, err := image.Layers()
	if err != nil {
		return tarball.Descriptor{}, err
	}
	d := tarball.Descriptor{Config: blobs + config.Hex, RepoTags: []string{tag}}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return tarball.Descriptor{}, err
		}
		d.Layers = append(d.Layers, blobs+digest.Hex)
	}
	return d, nil
}

// read reads the files of a folder, in the order of their names.
func read(dir string) (all []file, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		all = append(all, file{name: name, mode: 0o644, data: data})
		return err
	})
	return all, err
}

func imageOf(p program, version string) (v1.Image, error) {
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	others, err := licences(p.info)
	if err != nil {
		return nil, err
	}
	base, err := layer(p.time, []file{
		{name: "data/", mode: 0o700, user: user},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o444, data: roots()},
		{name: "tmp/", mode: 0o1777},
	})
	if err != nil {
		return nil, err
	}
	own, err := layer(p.time, []file{
		{name: "usr/bin/parley", mode: 0o555, data: p.data},
		{name: "usr/share/doc/parley/LICENSE", mode: 0o444, data: licence},
		{name: "usr/share/doc/parley/THIRD-PARTY-LICENSES", mode: 0o444, data: others},
	})
	if err != nil {
		return nil, err
	}
	at := v1.Time{Time: p.time.UTC()}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: base, History: v1.History{Created: at, CreatedBy: "deploy/release: folders and CA certificates"}},
		mutate.Addendum{Layer: own, History: v1.History{Created: at, CreatedBy: "deploy/release: parley " + version}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, at
	config.Config = v1.Config{
		User:       "65532:65532",
		Entrypoint: []string{"/usr/bin/parley"},
		Cmd:        []string{"serve", "--listen", "0.0.0.0:4222", "--http", "0.0.0.0:8080"},
		Env:        []string{"PATH=/usr/bin", "PARLEY_DATA=/data"},
		WorkingDir: "/data",
		Volumes:    map[string]struct{}{"/data": {}},
		ExposedPorts: map[string]struct{}{
			"4222/tcp": {}, "8080/tcp": {},
		},
		StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "parley",
			"org.opencontainers.image.description": "session broker for agents that negotiate",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.source":      "https://" + module,
			"org.opencontainers.image.version":     version,
			"org.opencontainers.image.revision":    p.commit,
			"org.opencontainers.image.created":     p.time.UTC().Format(time.RFC3339),
		},
	}
	return mutate.ConfigFile(image, config)
}

func layer(at time.Time, files []file) (v1.Layer, error) {
	data, err := tarred(files, at)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, tarball.WithMediaType(types.OCILayer))
}

// roots are Mozilla's CAs but for those that it trusts with a constraint, which a PEM file cannot say.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if _, err := x509.ParseCertificate(root.Certificate); err != nil {
			continue
		}
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) //nolint:errcheck // a buffer takes all
	}
	return out.Bytes()
}
