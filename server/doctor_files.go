package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/performatives"
)

// What is too little, too slow or too soon.
const (
	fewBytes    = 100 << 20 // on the disk: a broker stops soon
	littleBytes = 1 << 30
	slowFsync   = 10 * time.Millisecond
	someSkew    = time.Second
	expiresSoon = 30 * 24 * time.Hour
)

// seeds are the key files that a start needs or makes.
var seeds = []string{BrokerSeed, BrokerLogin, OperatorSeed, calloutSeed, systemSeed, issuerSeed}

// files examines the data directory. It reports whether there is an embedded store.
func (e *examiner) files() (store bool) {
	dir := e.o.Data
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.add(Warn, "data", "Set --data to the directory of the installation, if there is one.", "%s is not there: serve begins a new installation in it", dir)
		return false
	case err != nil:
		e.add(Fail, "data", "Let the broker's user read and write it.", "%v", err)
		return false
	case !info.IsDir():
		e.add(Fail, "data", "Set --data to a directory.", "%s is no directory", dir)
		return false
	}
	_, missing := os.ReadDir(filepath.Join(dir, "nats", "jetstream"))
	if store = missing == nil; !store && !errors.Is(missing, fs.ErrNotExist) {
		e.add(Fail, "data", "chown -R it, for the broker's user.", "the store cannot be read: %v", missing)
	}
	e.writes(dir)
	if free, _, ok := diskOf(dir); ok {
		status, do := OK, ""
		if free < littleBytes {
			status, do = Warn, "Free some, or give it a larger disk: a full disk stops the broker."
		}
		if free < fewBytes {
			status = Fail
		}
		e.add(status, "disk", do, "%d MiB are free for %s", free>>20, dir)
	}
	e.keys(dir, store)
	checkpoint := checkpointFile{filepath.Join(dir, CheckpointFile)}
	if _, err := checkpoint.Load(); errors.Is(err, fs.ErrPermission) {
		e.add(Fail, "log", "Let the broker's user read and write it.", "%v", err)
	} else if err != nil {
		e.add(Fail, "log", replaceCheckpoint, "%s is no checkpoint", checkpoint.path)
	}
	if store && !e.running {
		e.shards(dir)
		e.storeWritable(dir)
	}
	return store
}

// foreign reports whether the broker's key is not the one with which this directory's store was written: that signed the
// newest checkpoint of the public log, which is beside the store.
func foreign(dir string, key brokerKey) bool {
	checkpoint, err := checkpointFile{filepath.Join(dir, CheckpointFile)}.Load()
	return err == nil && ledger.Foreign(checkpoint, key.secret)
}

// shardsOf compares the shards of a store with --shards; 0 is a store without streams.
func (e *examiner) shardsOf(is int) (same bool) {
	want := max(1, e.o.Shards)
	if is > 0 && is != want {
		e.add(Fail, "streams", "Start with --shards as when the store was made.", "the store was made with --shards %d, not %d", is, want)
		return false
	}
	return true
}

// writes makes a file in the data directory, and removes it.
func (e *examiner) writes(dir string) {
	const do = "Mount the disk for writing, free some of it, and let the broker's user write there."
	file, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		e.add(Fail, "data", do, "no file can be made: %v", err)
		return
	}
	defer os.Remove(file.Name()) //nolint:errcheck // what can be done?
	defer file.Close()           //nolint:errcheck // it is removed
	took := make([]time.Duration, 5)
	for n := range took {
		began := time.Now()
		_, err := file.WriteAt(make([]byte, 4<<10), 0)
		if err == nil {
			err = file.Sync()
		}
		if err != nil {
			e.add(Fail, "data", do, "no file can be written: %v", err)
			return
		}
		took[n] = time.Since(began)
	}
	e.add(OK, "data", "", "%s can be written", dir)
	if e.o.NATS != "" {
		return // its servers have the disks, and the clock
	}
	slices.Sort(took)
	middle := took[len(took)/2].Round(10 * time.Microsecond)
	if middle > slowFsync && e.o.Sync == 0 {
		e.add(Warn, "fsync", "Use a faster disk, or --sync 1s if a power failure may lose a second.", "an fsync takes %s, and each act waits for one", middle)
	} else {
		e.add(OK, "fsync", "", "an fsync takes %s", middle)
	}
	if info, err := file.Stat(); err == nil {
		e.clock("the file system", info.ModTime(), e.now())
	}
}

// clock compares two clocks.
func (e *examiner) clock(of string, theirs, ours time.Time) {
	const do = "Keep both on NTP: acts of a clock that is more than 5 minutes off are refused."
	off := ours.Sub(theirs).Round(time.Millisecond)
	switch {
	case off.Abs() > broker.ClockSkew:
		e.add(Fail, "clock", do, "this machine's clock and that of %s differ by %s", of, off)
	case off.Abs() > someSkew:
		e.add(Warn, "clock", do, "this machine's clock and that of %s differ by %s", of, off)
	default:
		e.add(OK, "clock", "", "it agrees with that of %s", of)
	}
}

// keys examines the key files: whether they are there, hold a seed, are of this store, and who can read them.
func (e *examiner) keys(dir string, store bool) {
	good := true
	fault := func(status Status, do, what string, args ...any) {
		good = false
		e.add(status, "keys", do, what, args...)
	}
	var missing []string
	key, err := readBrokerKey(dir)
	_, forged := errors.AsType[*performatives.HistoryError](err)
	e.lost = errors.Is(err, ErrKeyLost)
	_, unread := ReadSeed(filepath.Join(dir, BrokerSeed))
	switch {
	case e.lost || forged:
		fault(Fail, "Restore "+BrokerSeed+", "+BrokerKeysFile+" and "+BrokerSecret+" from a backup or another broker: without them the broker does not start.", "%s: %v", dir, err)
	case err == nil && store && foreign(dir, key):
		fault(Fail, "Restore "+BrokerSeed+" from a backup, and with it "+BrokerKeysFile+" and "+BrokerSecret+" if the key was rotated: with this one the broker does not start.",
			"%s: %s is of another installation than the store", dir, BrokerSeed)
	case err == nil, errors.Is(err, fs.ErrNotExist), unread != nil && err.Error() == unread.Error():
		// There is no fault, or the one of the seed, which is told below.
	case errors.Is(err, fs.ErrPermission):
		fault(Fail, "Let the broker's user read it.", "%v", err)
	default:
		fault(Fail, "Restore the file from a backup or another broker: as it is, the broker does not start.", "%v", err)
	}
	if key.pair != nil {
		key.pair.Wipe()
	}
	if why := old(key.since, e.now()); err == nil && why != "" {
		fault(Warn, "Stop all brokers and replace it by 'parley keys rotate broker'.", "the broker's key is of %s, older than a year", key.since.Format(time.DateOnly))
	}
	for _, name := range seeds {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == BrokerSeed && e.lost:
			// It was said.
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			fault(Fail, "Let the broker's user read it.", "%v", err)
		default:
			if pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(text)))); err != nil {
				fault(Fail, "Restore it from a backup.", "%s does not contain an nkey seed", path)
			} else {
				pair.Wipe()
			}
		}
	}
	switch {
	case len(missing) == len(seeds) && e.o.NATS != "":
		fault(Warn, "Copy the *.nk files of the installation's other brokers, if there are any.", "%s has no keys: serve makes new ones", dir)
	case len(missing) == len(seeds):
		fault(Warn, "", "%s has no keys yet: serve makes them", dir)
	case len(missing) > 0:
		fault(Warn, "Restore them from a backup, if you can: with others, .creds files no longer log in, and an external server has to be told.", "%s lacks %s: serve makes new ones", dir, strings.Join(missing, ", "))
	}
	files := []string{e.o.NATSSeed, e.o.NATSCreds}
	for _, name := range append(slices.Clone(seeds), CredsFile, BrokerSecret, nextSeed) {
		files = append(files, filepath.Join(dir, name))
	}
	for _, path := range files {
		mode, open := openToOthers(path)
		switch {
		case open && isMounted(path):
			fault(Warn, "See that no other program runs in this group.", "the group can read %s, as it is mounted: mode %04o", path, mode)
		case open:
			fault(Fail, "chmod 600 it, and replace it if they may have read it.", "others on this machine can read %s: mode %04o", path, mode)
		}
	}
	if good {
		e.add(OK, "keys", "", "%d keys in %s, mode 0600", len(seeds), dir)
	}
}

// openToOthers reports whether others than its owner can read a file.
func openToOthers(path string) (mode fs.FileMode, open bool) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&0o077 != 0
}

// isMounted reports whether a file is as Kubernetes mounts a Secret: another user's, and only its group can read it.
func isMounted(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o440 {
		return false
	}
	user, _, known := ownerOf(info)
	return known && user != os.Geteuid()
}

// certificates examines the dates of the certificates, and who can read the key.
func (e *examiner) certificates() {
	t := e.o.TLS
	if t.Cert != "" && t.Key != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			e.add(Fail, "certificate", "Give --tls-cert and --tls-key the PEM files of one certificate and its key.", "%v", err)
		} else {
			e.dates(t.Cert, pair.Certificate, "Renew it. A running broker reads a renewed file by itself.")
		}
		if mode, open := openToOthers(t.Key); open {
			e.add(Warn, "certificate", "chmod 600 it.", "others on this machine can read %s: mode %04o", t.Key, mode)
		}
	}
	e.authority("--tls-ca", t.CA)
	e.authority("--nats-ca", t.NATSCA)
}

// authority examines the CA in a file, "" for none, that a flag names.
func (e *examiner) authority(flag, file string) {
	if file == "" {
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		e.add(Fail, "certificate", "Give "+flag+" a PEM file.", "%v", err)
		return
	}
	var all [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		all = append(all, block.Bytes)
	}
	e.dates(file, all, "Renew it, and restart the broker.")
}

// dates examines certificates of one file; do says how to renew one.
func (e *examiner) dates(file string, all [][]byte, do string) {
	if len(all) == 0 {
		e.add(Fail, "certificate", "Give it a PEM file.", "%s has no certificate", file)
	}
	for _, der := range all {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			e.add(Fail, "certificate", do, "%s: %v", file, err)
			continue
		}
		name, now := c.Subject.String(), e.now()
		switch {
		case now.After(c.NotAfter):
			e.add(Fail, "certificate", do, "%s: %s expired on %s", file, name, moment(c.NotAfter, now))
		case now.Before(c.NotBefore):
			e.add(Fail, "certificate", "Check this machine's clock.", "%s: %s is valid only from %s", file, name, moment(c.NotBefore, now))
		case c.NotAfter.Sub(now) < expiresSoon:
			e.add(Warn, "certificate", do, "%s: %s expires on %s", file, name, moment(c.NotAfter, now))
		default:
			e.add(OK, "certificate", "", "%s: %s is valid until %s", file, name, c.NotAfter.Format(time.DateOnly))
		}
	}
}
