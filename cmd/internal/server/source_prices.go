// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// A priceFile is the file with prices that a policy file names.
type priceFile struct {
	policy string          // the path of the policy
	keys   policysign.Keys // of the policy
	oldest string          // the date of the active prices: signed prices must not be older

	path       string // "" if the policy names none
	info       fs.FileInfo
	settled    bool              // info identifies the version that was read
	digest     [sha256.Size]byte // of the last contents, valid or not; zero if unreadable
	unreadable bool
}

// load is [policy.Options].Prices.
func (f *priceFile) load(file string) (*policy.Prices, error) {
	f.path = policyyaml.PricePath(f.policy, file)
	data, err := f.read()
	if err != nil {
		return nil, err
	}
	p, err := f.keys.ParsePrices(f.path, data)
	if errors.Is(err, policysign.ErrSignature) { // it is in another file, and can come later
		f.digest, f.unreadable = [sha256.Size]byte{}, true
	}
	if err == nil && len(f.keys) > 0 && p.Date() < f.oldest {
		return nil, fmt.Errorf("%s: the date %s is before %s, the date of the active prices; to roll back, sign the old prices with a new date", f.path, p.Date(), f.oldest)
	}
	return p, err
}

func (f *priceFile) read() ([]byte, error) {
	f.digest, f.unreadable = [sha256.Size]byte{}, true
	info, err := os.Stat(f.path) // before the contents, so that a later change is noticed
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // it is read again and again
		return nil, fmt.Errorf("%s: not a regular file", f.path)
	}
	data, err := policyyaml.Read(f.path)
	if err != nil {
		return nil, err
	}
	f.info, f.digest, f.unreadable = info, sha256.Sum256(data), false
	f.settled = time.Since(info.ModTime()) > settleTime
	return data, nil
}

// hasChanged reads the file again.
func (f *priceFile) hasChanged() bool {
	if f.path == "" {
		return false
	}
	before := f.digest
	_, _ = f.read() // an error gives another digest, or the same error again
	return f.digest != before
}

// isUnchanged reports whether the file's status alone proves that the contents are the same as in the last read.
func (f *priceFile) isUnchanged() bool {
	return f.path == "" || f.settled && !f.unreadable && isSameVersion(f.path, f.info)
}

func isSameVersion(path string, last fs.FileInfo) bool {
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, last) && info.ModTime().Equal(last.ModTime()) && info.Size() == last.Size()
}
