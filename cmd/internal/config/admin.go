// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/metehq/mete/httpapi"
)

// TLS lists the PEM files for TLS at an address. The server checks them every second and reloads them when they
// change. Relative paths in a configuration file are relative to that file.
type TLS struct {
	// Cert is the certificate chain and Key the private key. Plain HTTP is used if both are empty.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`

	// ClientCA contains the CA certificates for client certificates. If it is set, clients need a certificate.
	ClientCA string `yaml:"client_ca"`
}

// On reports whether the address uses TLS.
func (t TLS) On() bool { return t.Cert != "" }

// An AdminToken grants access to the admin API. Clients send it as Authorization: Bearer TOKEN.
type AdminToken struct {
	// Name identifies the token in the log and the audit trail. It must be unique and has at most 64 bytes.
	Name string `yaml:"name"`

	// Role is read, operate or configure: see [httpapi.Role].
	Role httpapi.Role `yaml:"role"`

	// Token is the secret, 16 bytes to 1 KiB without spaces. If it is in File instead, surrounding white space is
	// removed, and the file is reloaded when it changes. A relative path in a configuration file is relative to
	// that file.
	Token string `yaml:"token" secret:"all"`
	File  string `yaml:"token_file"`
}

func ReadToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if !isValidToken(token) {
		return "", fmt.Errorf("%s: %s", file, tokenForm)
	}
	return token, nil
}

// isValidToken reports whether a token has a valid length and only printable ASCII characters.
func isValidToken(token string) bool {
	return len(token) >= MinToken && len(token) <= MaxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

var tokenForm = fmt.Sprintf("must be %d to %d printable ASCII characters without spaces", MinToken, MaxToken)

const (
	MinToken = 16
	MaxToken = 1 << 10

	maxTokens    = 100
	maxTokenName = 64
)
