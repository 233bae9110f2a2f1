package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A file is an entry of an archive or of an image's layer. A name that ends in / is a folder.
type file struct {
	name string
	mode int64
	data []byte
	user int // owner and group
}

// packageAll writes to out what is published for each program, and SHA256SUMS of all.
func packageAll(programs []program, out, version string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	documents, err := pages(programs)
	if err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		documents = append(documents, file{name: name, mode: 0o644, data: data})
	}
	made := map[string][]byte{}
	for _, p := range programs {
		licences, err := licences(p.info)
		if err != nil {
			return err
		}
		files := append([]file{
			{name: p.name(), mode: 0o755, data: p.data},
			{name: "THIRD-PARTY-LICENSES", mode: 0o644, data: licences},
		}, documents...)
		base := p.base(version)
		for i := range files {
			files[i].name = path.Join(base, files[i].name)
		}
		if p.os == "windows" {
			made[base+".zip"], err = zipped(files, p.time)
		} else {
			made[base+".tar.gz"], err = gzipped(files, p.time)
		}
		if err != nil {
			return err
		}
		if made[base+".cdx.json"], err = bom(p, version); err != nil {
			return err
		}
	}
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(made)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(made[name]), name)
	}
	made["SHA256SUMS"] = []byte(sums.String())
	for name, data := range made {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pages are the manual pages and the completions, as the program for this machine prints them.
func pages(programs []program) ([]file, error) {
	i := slices.IndexFunc(programs, func(p program) bool { return p.os == runtime.GOOS && p.arch == runtime.GOARCH })
	if i < 0 {
		return nil, fmt.Errorf("none of the programs runs on %s-%s, to print the manual pages", runtime.GOOS, runtime.GOARCH)
	}
	dir, err := os.MkdirTemp("", "parley-man-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command(programs[i].path, args...)
		cmd.Env = append(os.Environ(), "TZ=UTC", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", programs[i].time.Unix()))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("parley %s: %w", strings.Join(args, " "), err)
		}
		return out, nil
	}
	if _, err := run("man", dir); err != nil {
		return nil, err
	}
	var all []file
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: "man/" + entry.Name(), mode: 0o644, data: data})
	}
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		data, err := run("completion", shell)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: "completions/parley." + shell, mode: 0o644, data: data})
	}
	return all, nil
}

// tarred writes the files in their order, with one time for all.
func tarred(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at.UTC(), Uid: f.user, Gid: f.user, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func gzipped(files []file, at time.Time) ([]byte, error) {
	data, err := tarred(files, at)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

func zipped(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(os.FileMode(f.mode))
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
