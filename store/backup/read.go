package backup

import (
	"archive/tar"
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// ErrDamaged is returned for a file that is not a complete backup.
var ErrDamaged = errors.New("not a complete backup")

// read visits a backup and checks that it is complete: all streams of the manifest, all
// chunks in order, and the end.
func read(from io.Reader, v visitor) error {
	begin := bufio.NewReader(from)
	if err := packed(begin); err != nil {
		return err
	}
	t := tar.NewReader(begin)
	r := &reader{visitor: v, left: map[string]bool{}, parts: map[string]string{}}
	after := ""
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, tar.ErrHeader) {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, cmp.Or(after, "it is no tar"), err)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		after = "it is damaged after " + header.Name
		if header.Size > largest {
			return fmt.Errorf("%w: %s has %d bytes", ErrDamaged, header.Name, header.Size)
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, header.Name, err)
		}
		if err := r.part(header.Name, data); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
	missing := slices.Sorted(maps.Keys(r.left))
	if !r.begun {
		missing = append(missing, manifestName)
	}
	if !r.ended {
		missing = append(missing, endName)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: it is truncated; missing: %s", ErrDamaged, strings.Join(missing, ", "))
	}
	return nil
}

// packers are what others may have made of a backup, by its first bytes.
var packers = []struct{ magic, how string }{
	{"\x1f\x8b", "it is compressed; gunzip it first"},
	{"\x28\xb5\x2f\xfd", "it is compressed; unzstd it first"},
	{"\xfd7zXZ\x00", "it is compressed; unxz it first"},
	{"BZh", "it is compressed; bunzip2 it first"},
	{"age-encryption.org/", "it is encrypted; decrypt it with age first"},
}

// packed refuses what has to become a tar first.
func packed(from *bufio.Reader) error {
	for _, p := range packers {
		if begins, err := from.Peek(len(p.magic)); err == nil && string(begins) == p.magic {
			return fmt.Errorf("%w: %s", ErrDamaged, p.how)
		}
	}
	return nil
}

func (r *reader) part(name string, data []byte) error {
	folder, file := path.Split(name)
	stream := strings.TrimSuffix(strings.TrimPrefix(folder, streamFolder), "/")
	if r.ended {
		return fmt.Errorf("%w: it is after the end", ErrDamaged)
	}
	lists := strings.HasPrefix(file, consumersName)
	if name == manifestName || folder == keysFolder || file == configName || file == sumName || lists {
		r.parts[name] = digest(data)
	}
	switch {
	case name == manifestName:
		return r.manifestPart(data)
	case !r.begun:
		return fmt.Errorf("%w: the manifest is not first", ErrDamaged)
	case folder == keysFolder:
		if r.key == nil {
			return nil
		}
		return r.key(File{file, data})
	case name == endName:
		return r.endPart(data)
	case !r.left[stream]:
		return fmt.Errorf("%w: not a stream of the manifest", ErrDamaged)
	case lists:
		return r.consumersPart(data)
	case file == configName:
		return r.streamPart(stream, data)
	case r.sum == nil:
		return fmt.Errorf("%w: there is no %s before it", ErrDamaged, configName)
	case file == sumName:
		return r.sumPart(stream, data)
	default:
		if r.sum.add(data); file != fmt.Sprintf("%08d", r.sum.chunks) {
			return fmt.Errorf("%w: chunk %d is expected here", ErrDamaged, r.sum.chunks)
		}
		if r.chunk == nil {
			return nil
		}
		return r.chunk(stream, data)
	}
}

func (r *reader) manifestPart(data []byte) error {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if m.Format != Format {
		return fmt.Errorf("a backup of format %d; this parley reads format %d", m.Format, Format)
	}
	r.begun = true
	for _, stream := range m.Streams {
		r.left[stream] = true
	}
	return r.manifest(m)
}

func (r *reader) streamPart(stream string, data []byte) error {
	var as config
	if err := json.Unmarshal(data, &as); err != nil || as.Config == nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r.sum = newSummer()
	if r.stream == nil {
		return nil
	}
	return r.stream(stream, as)
}

func (r *reader) consumersPart(data []byte) error {
	var page []consumer
	if err := json.Unmarshal(data, &page); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if r.consumers != nil {
		r.consumers(page)
	}
	return nil
}

func (r *reader) sumPart(stream string, data []byte) error {
	var want sum
	if err := json.Unmarshal(data, &want); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch got := r.sum.sum(); {
	case got.Chunks != want.Chunks || got.Bytes != want.Bytes:
		return fmt.Errorf("%w: it lacks some of %s: %d chunks with %d bytes; want %d with %d", ErrDamaged, stream, got.Chunks, got.Bytes, want.Chunks, want.Bytes)
	case got != want:
		return fmt.Errorf("%w: a chunk of %s is damaged: the checksum does not match", ErrDamaged, stream)
	}
	delete(r.left, stream)
	r.sum = nil
	if r.end == nil {
		return nil
	}
	return r.end(stream)
}

// endPart compares the digests of the parts with those that the backup was made with.
func (r *reader) endPart(data []byte) error {
	var e end
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r.ended = true
	if e.Parts == nil { // of an earlier version
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.parts)) {
		if r.parts[name] != e.Parts[name] {
			return fmt.Errorf("%w: %s is damaged: its checksum does not match", ErrDamaged, name)
		}
	}
	for name := range e.Parts {
		if r.parts[name] == "" {
			return fmt.Errorf("%w: %s is missing", ErrDamaged, name)
		}
	}
	return nil
}
