// SPDX-License-Identifier: Apache-2.0

// Package admintoken shares a generated admin token with local commands. A server without configured tokens calls
// [Create], which saves a token in a file. Commands of the same user read it with [Find].
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

const maxBytes = 1 << 10

// A File is a token in a file that only its owner can read.
type File struct {
	Path  string
	Token string
}

// A SignIn is the response to POST dashboard/link and POST dashboard/session. Its token is the one-time token of a
// link or the token of a session.
type SignIn struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Create generates a token for the admin address, host:port, and saves it. It replaces the file of an earlier server
// at this address.
func Create(address string) (File, error) {
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

// Remove deletes the file unless another server has replaced it.
func (f File) Remove() {
	if text, err := read(f.Path); err == nil && text == f.Token {
		os.Remove(f.Path)
	}
}

// Find returns the token for host:port and the loopback address to send it to. It returns false unless a server of
// this user on this machine saved a token. localhost can mean 127.0.0.1 or ::1. Sending the token only to the
// returned address hides it from other programs on this machine.
func Find(address string) (token string, at netip.AddrPort, ok bool) {
	for _, at := range loopbackAddresses(address) {
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

// loopbackAddresses returns the loopback addresses that host:port stands for.
func loopbackAddresses(address string) []netip.AddrPort {
	if port, ok := strings.CutPrefix(address, "localhost:"); ok {
		return append(loopbackAddresses("127.0.0.1:"+port), loopbackAddresses("[::1]:"+port)...)
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

// path returns $XDG_RUNTIME_DIR/mete/admin-ADDRESS-PORT.token, or a file in the user's cache directory if
// XDG_RUNTIME_DIR is not set.
func path(at netip.AddrPort) (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return "", errors.New("no directory for the token: neither XDG_RUNTIME_DIR nor HOME is set")
		}
	}
	host := strings.ReplaceAll(at.Addr().Unmap().WithZone("").String(), ":", "_") // some systems do not allow colons in names
	return filepath.Join(dir, "mete", fmt.Sprintf("admin-%s-%d.token", host, at.Port())), nil
}
