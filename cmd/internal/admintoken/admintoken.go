// SPDX-License-Identifier: Apache-2.0

// Package admintoken is where a server that was given no tokens leaves the one it
// makes, and where the commands of the same user find it.
package admintoken

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// maxBytes bounds what is read of a file.
const maxBytes = 1 << 10

// A File is a token in a file that only its owner can read.
type File struct {
	Path  string
	Token string
}

// Make makes a token for the admin address, host:port, and writes it. The file of
// a server that listened there before is replaced.
func Make(address string) (File, error) {
	path, err := path(address)
	if err != nil {
		return File{}, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return File{}, err
	}
	f := File{Path: path, Token: rand.Text()}
	w, err := os.CreateTemp(dir, ".admin-*") // only its owner can read it
	if err != nil {
		return File{}, err
	}
	defer os.Remove(w.Name()) // what is left where it could not be renamed
	_, err = w.WriteString(f.Token + "\n")
	if err := errors.Join(err, w.Close()); err != nil {
		return File{}, err
	}
	return f, os.Rename(w.Name(), path)
}

// Remove removes the file, unless another server has put its own in its place.
func (f File) Remove() {
	if text, err := read(f.Path); err == nil && text == f.Token {
		os.Remove(f.Path)
	}
}

// Find returns the token of the server at host:port, if it is one on this machine
// that left it for this user.
func Find(address string) (token string, ok bool) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", false
	}
	if addr, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !addr.IsLoopback()) {
		return "", false // nobody else is told our tokens
	}
	path, err := path(address)
	if err != nil {
		return "", false
	}
	token, err = read(path)
	return token, err == nil && token != ""
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

// path is $XDG_RUNTIME_DIR/mete/admin-PORT.token or, where there is no such
// directory, the same in the user's cache.
func path(address string) (string, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		if dir, err = os.UserCacheDir(); err != nil {
			return "", fmt.Errorf("there is no place for it: neither XDG_RUNTIME_DIR nor HOME is set")
		}
	}
	return filepath.Join(dir, "mete", "admin-"+port+".token"), nil
}
