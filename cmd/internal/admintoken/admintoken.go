// SPDX-License-Identifier: Apache-2.0

// Package admintoken is where a server that was given no tokens leaves the one it
// makes, and where the commands of the same user find it.
package admintoken

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/metehq/mete/internal/atomicfile"
)

// maxBytes bounds what is read of a file.
const maxBytes = 1 << 10

// A File is a token in a file that only its owner can read.
type File struct {
	Path  string
	Token string
}

// A SignIn is the answer of a server to POST dashboard/link and POST dashboard/session. Its
// token is the one-time token of a link, or the token of a session.
type SignIn struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Make makes a token for the admin address, host:port, and writes it. The file of
// a server that listened there before is replaced.
func Make(address string) (File, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return File{}, fmt.Errorf("admintoken: %w", err)
	}
	path, err := path(at)
	if err != nil {
		return File{}, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return File{}, err
	}
	f := File{Path: path, Token: rand.Text()}
	if err := atomicfile.Write(path, []byte(f.Token+"\n"), 0o600); err != nil {
		return File{}, err
	}
	return f, nil
}

// Remove removes the file, unless another server has put its own in its place.
func (f File) Remove() {
	if text, err := read(f.Path); err == nil && text == f.Token {
		os.Remove(f.Path)
	}
}

// Find returns the token of the server at host:port, if it is one on this machine
// that left it for this user, and the address at which it is to be asked. For localhost
// that is the one that the token is for: who else listens on this machine, at the other
// address that localhost stands for, is told nothing.
func Find(address string) (token string, at netip.AddrPort, ok bool) {
	for _, at := range loopback(address) {
		path, err := path(at)
		if err != nil {
			continue
		}
		if token, err := read(path); err == nil && token != "" {
			return token, at, true
		}
	}
	return "", netip.AddrPort{}, false
}

// loopback is the addresses of this machine that host:port stands for. Nobody else is
// told our tokens.
func loopback(address string) []netip.AddrPort {
	if port, ok := strings.CutPrefix(address, "localhost:"); ok {
		return append(loopback("127.0.0.1:"+port), loopback("[::1]:"+port)...)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return nil
	}
	return []netip.AddrPort{at}
}

func read(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxBytes:
		return "", fmt.Errorf("%s is not a token", path)
	}
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}

// path is $XDG_RUNTIME_DIR/mete/admin-ADDRESS-PORT.token or, where there is no such
// directory, the same in the user's cache.
func path(at netip.AddrPort) (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return "", errors.New("there is no place for it: neither XDG_RUNTIME_DIR nor HOME is set")
		}
	}
	host := strings.ReplaceAll(at.Addr().Unmap().WithZone("").String(), ":", "_") // which not every system has in names
	return filepath.Join(dir, "mete", fmt.Sprintf("admin-%s-%d.token", host, at.Port())), nil
}
