package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/nats-io/nkeys"
	"github.com/nats-io/nuid"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/server/login"
)

// The key files in a data directory, mode 0600. They hold seeds: whoever reads
// them can act as the broker or authorize any login.
const (
	BrokerSeed   = "broker.nk"       // signs receipts, and logs in nowhere
	BrokerLogin  = "broker.login.nk" // logs in as the broker
	OperatorSeed = "operator.nk"     // logs in as operator
	calloutSeed  = "callout.nk"      // logs in to serve auth callouts
	systemSeed   = "system.nk"       // logs in to disconnect revoked keys
	issuerSeed   = "issuer.nk"       // signs the replies to auth callouts
)

type keys struct {
	broker, login, operator, callout, system, issuer nkeys.KeyPair

	brokerKey
	authority *login.Authority
}

func openKeys(dir string) (k keys, err error) {
	if k.brokerKey, err = readBrokerKey(dir); errors.Is(err, fs.ErrNotExist) {
		if _, err = makeSeed(filepath.Join(dir, BrokerSeed), nkeys.CreateUser); err == nil {
			k.brokerKey, err = readBrokerKey(dir)
		}
	}
	if err != nil {
		return k, err
	}
	if err := k.finish(dir); err != nil {
		return k, err
	}
	k.broker = k.pair
	for _, f := range []struct {
		into   *nkeys.KeyPair
		file   string
		create func() (nkeys.KeyPair, error)
	}{
		{&k.login, BrokerLogin, nkeys.CreateUser},
		{&k.operator, OperatorSeed, nkeys.CreateUser},
		{&k.callout, calloutSeed, nkeys.CreateUser},
		{&k.system, systemSeed, nkeys.CreateUser},
		{&k.issuer, issuerSeed, nkeys.CreateAccount},
	} {
		if *f.into, err = seed(dir, f.file, f.create); err != nil {
			return k, err
		}
	}
	k.authority, err = login.NewAuthority(k.issuer)
	return k, err
}

// readKeys reads the keys that a login to an external server may need. It makes none: what the data directory lacks is nil.
func readKeys(dir string) (k keys, err error) {
	for file, into := range map[string]*nkeys.KeyPair{BrokerSeed: &k.broker, BrokerLogin: &k.login, issuerSeed: &k.issuer} {
		if *into, err = ReadSeed(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return k, err
		}
	}
	if k.issuer == nil {
		return k, nil
	}
	k.authority, err = login.NewAuthority(k.issuer)
	return k, err
}

// exposed returns the key files in a data directory that others than their owner
// can read.
func exposed(dir string) (files []string) {
	if runtime.GOOS == "windows" { // it has other permissions
		return nil
	}
	for _, file := range []string{BrokerSeed, BrokerLogin, OperatorSeed, calloutSeed, systemSeed, issuerSeed, CredsFile, BrokerSecret, nextSeed} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			files = append(files, file)
		}
	}
	return files
}

// public returns the public keys that the NATS server is configured with.
func (k keys) public() (p embedded.Keys, err error) {
	for _, f := range []struct {
		into *string
		key  nkeys.KeyPair
	}{{&p.Broker, k.login}, {&p.Callout, k.callout}, {&p.System, k.system}, {&p.Issuer, k.issuer}} {
		if *f.into, err = f.key.PublicKey(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// reserved returns every key of the broker as a user key, and the ones that it had before. No principal may register one of them.
func (k keys) reserved() (all []performatives.Key, err error) {
	for _, pair := range []nkeys.KeyPair{k.broker, k.login, k.operator, k.callout, k.system, k.issuer} {
		seed, err := pair.Seed()
		if err != nil {
			return nil, err
		}
		_, raw, err := nkeys.DecodeSeed(seed)
		if err != nil {
			return nil, err
		}
		user, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, raw)
		if err != nil {
			return nil, err
		}
		public, err := user.PublicKey()
		if err != nil {
			return nil, err
		}
		all = append(all, performatives.Key(public))
	}
	for _, r := range k.history {
		all = append(all, r.Key)
	}
	return all, nil
}

// seed reads a key from the data directory, or creates it.
func seed(dir, file string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error) {
	path := filepath.Join(dir, file)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeSeed(path, create)
	}
	if err != nil {
		return nil, err
	}
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(text))))
	if err != nil {
		return nil, &SeedError{path}
	}
	return pair, nil
}

// A SeedError names a file that should contain a key's seed. It never has its contents.
type SeedError struct{ Path string }

func (e *SeedError) Error() string { return e.Path + " does not contain an nkey seed" }

func makeSeed(path string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error) {
	pair, err := create()
	if err != nil {
		return nil, err
	}
	return pair, WriteSeed(path, pair)
}

// ReadSeed reads a key's seed from a file.
func ReadSeed(path string) (nkeys.KeyPair, error) {
	return seed(filepath.Dir(path), filepath.Base(path), func() (nkeys.KeyPair, error) {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	})
}

// WriteSeed writes a key's seed to a new file, mode 0600.
func WriteSeed(path string, key nkeys.KeyPair) error {
	text, err := key.Seed()
	if err != nil {
		return err
	}
	return WriteSecret(path, append(text, '\n'))
}

// WriteSecret writes a secret to a new file, mode 0600, which is whole and on disk or not there.
func WriteSecret(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	part := filepath.Join(dir, "."+filepath.Base(path)+"-"+nuid.Next())
	if err := writeNew(part, text); err != nil {
		return err
	}
	err := os.Link(part, path) // which replaces nothing
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = writeNew(path, text) // on a file system without links
	}
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s already exists; parley never overwrites a key", path)
	}
	return errors.Join(err, os.Remove(part), syncDir(dir))
}

// writeNew writes a file that is not there, and fsyncs it; if that fails, it is not there either.
func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// Config returns a nats-server.conf for an external server. It creates the keys
// that the data directory lacks; the configuration contains only public keys.
func Config(dir string, shards int) (string, error) {
	if err := CheckShards(shards); err != nil {
		return "", err
	}
	k, err := openKeys(dir)
	if err != nil {
		return "", err
	}
	public, err := k.public()
	if err != nil {
		return "", err
	}
	return embedded.Config(public, shards)
}

// CredsFile is the file in a data directory with the broker's credentials for an
// external server in operator mode.
const CredsFile = "broker.creds"

// Nsc returns the nsc commands that configure an external server in operator
// mode. It creates the keys that the data directory lacks, and writes the broker's
// credentials into the directory. The commands contain no secret.
func Nsc(dir string, shards int) (string, error) {
	if err := CheckShards(shards); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	k, err := openKeys(dir)
	if err != nil {
		return "", err
	}
	public, err := k.public()
	if err != nil {
		return "", err
	}
	own, err := k.authority.Own(login.BrokerAccount, "parley broker", public.Broker)
	if err != nil {
		return "", err
	}
	text, err := login.Creds(own, k.login)
	if err != nil {
		return "", err
	}
	creds := filepath.Join(dir, CredsFile)
	if err := os.WriteFile(creds, text, 0o600); err != nil {
		return "", err
	}
	return embedded.Nsc(public, k.authority, filepath.Join(dir, SystemJWT), creds, shards)
}
