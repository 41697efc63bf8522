// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/metehq/mete/httpapi"
)

// TLS are the files with which an address speaks TLS, in PEM. They are looked at
// each second, and read again when they change; in a configuration file, relative
// paths are relative to that file.
type TLS struct {
	// Cert is the certificate, with those that lead to its authority after it, and
	// Key its private key. Both empty: plain HTTP.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`

	// ClientCA has the authorities of client certificates. If it is set, the server
	// serves no client without a certificate.
	ClientCA string `yaml:"client_ca"`
}

// On reports whether the address speaks TLS.
func (t TLS) On() bool { return t.Cert != "" }

// An AdminToken lets whoever sends it, as Authorization: Bearer TOKEN, use the
// admin API.
type AdminToken struct {
	// Name is who has it, for the log and the audit: at most 64 bytes. No two have
	// the same.
	Name string `yaml:"name"`

	// Role is read, operate or configure: see [httpapi.Role].
	Role httpapi.Role `yaml:"role"`

	// Token is the secret, 16 bytes to 1 KiB without blanks. It may be in File instead, from whose
	// ends blanks are cut, and which is read again when it changes. In a configuration file, a
	// relative path is relative to that file.
	Token string `yaml:"token" secret:"all"`
	File  string `yaml:"token_file"`
}

// ReadToken reads a token's file.
func ReadToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if !fitToken(token) {
		return "", fmt.Errorf("%s: %s", file, tokenForm)
	}
	return token, nil
}

// fitToken reports whether a token can be one.
func fitToken(token string) bool {
	return len(token) >= MinToken && len(token) <= MaxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// tokenForm is what a token must be.
var tokenForm = fmt.Sprintf("must be %d to %d printable ASCII characters without blanks", MinToken, MaxToken)

// Bounds of a token.
const (
	MinToken = 16
	MaxToken = 1 << 10

	maxTokens    = 100
	maxTokenName = 64
)
