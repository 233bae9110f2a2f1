package server

import (
	"errors"
	"io/fs"
	"os"
)

// ownAs gives a new file the owner of the first of these paths that is there: what root writes, the broker's user reads.
func ownAs(file *os.File, paths ...string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		user, group, known := ownerOf(info)
		if !known {
			return nil
		}
		if err := file.Chown(user, group); err != nil && user != os.Geteuid() {
			return err
		} // else only the group is another, to which mode 0600 gives nothing
		return nil
	}
	return nil
}
