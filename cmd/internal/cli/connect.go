// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/admintoken"
	"github.com/metehq/mete/cmd/internal/config"
)

// tokenVariable is the environment variable with a token for the admin API.
const tokenVariable = "METE_TOKEN"

// connectFlags are those that every command has which asks a server.
const connectFlags = "server token-file ca cert key-file"

// A connection is how a command reaches a server.
type connection struct {
	server             string
	tokenFile          string
	ca, cert, keyOfOwn string
}

// flags defines the flags. The default of --server is the server's.
func (c *connection) flags(fs *flagSet, usage, server string) {
	c.server = server
	fs.StringVar(&c.server, "server", server, usage)
	fs.StringVar(&c.tokenFile, "token-file", "", "send the token in `FILE` (default: $"+tokenVariable+", or the one that a server on this machine left for you)")
	fs.StringVar(&c.ca, "ca", "", "believe servers whose certificate is by an authority in `FILE`, in PEM, and no others")
	fs.StringVar(&c.cert, "cert", "", "show the certificate in `FILE`, in PEM")
	fs.StringVar(&c.keyOfOwn, "key-file", "", "the `FILE` with the key of --cert")
}

// A reach is how a server is reached.
type reach struct {
	http  *http.Client
	token string
}

// reach returns how the server is reached.
func (c *connection) reach() (*reach, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if err := c.trust(transport); err != nil {
		return nil, err
	}
	token, err := c.token(transport)
	if err != nil {
		return nil, err
	}
	return &reach{&http.Client{Timeout: client.DefaultTimeout, Transport: transport}, token}, nil
}

// client returns a client of the server.
func (c *connection) client() (*client.Client, error) {
	r, err := c.reach()
	if err != nil {
		return nil, err
	}
	return r.client(c.server)
}

// client returns a client of a server that is reached so.
func (r *reach) client(server string) (*client.Client, error) {
	made, err := client.New(server, r.http)
	if err != nil {
		return nil, fmt.Errorf("--server: %w", plain(err))
	}
	return made.WithToken(r.token), nil
}

// trust has the transport believe, and show, the certificates that were named.
func (c *connection) trust(t *http.Transport) error {
	t.TLSClientConfig = new(tls.Config)
	if c.ca != "" {
		text, err := os.ReadFile(c.ca)
		if err != nil {
			return fmt.Errorf("--ca: %w", err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("--ca: %s has no certificate in PEM", c.ca)
		}
	}
	switch {
	case c.cert == "" && c.keyOfOwn == "":
		return nil
	case c.cert == "" || c.keyOfOwn == "":
		return errors.New("--cert and --key-file: say both")
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.keyOfOwn)
	if err != nil {
		return fmt.Errorf("--cert: %w", err)
	}
	t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	return nil
}

// token is what is sent: nothing, if nobody says one. Where it is the one that a server on
// this machine left, the transport goes to that server and no other.
func (c *connection) token(t *http.Transport) (string, error) {
	if c.tokenFile != "" {
		text, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		token := strings.TrimSpace(string(text))
		if !canBeToken(token) {
			return "", fmt.Errorf("--token-file: %s holds no token", c.tokenFile)
		}
		return token, nil
	}
	if token := strings.TrimSpace(os.Getenv(tokenVariable)); token != "" {
		if !canBeToken(token) {
			return "", fmt.Errorf("$%s holds no token", tokenVariable)
		}
		return token, nil
	}
	u, err := url.Parse(c.server)
	if err != nil {
		return "", nil // what is wrong with it is said elsewhere
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	asked := net.JoinHostPort(u.Hostname(), port)
	token, at, ok := admintoken.Find(asked)
	if !ok {
		return "", nil
	}
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == asked {
			address = at.String()
		}
		return dial(ctx, network, address)
	}
	return token, nil
}

// canBeToken reports whether a server can know it, and a header can carry it.
func canBeToken(token string) bool {
	return token != "" && len(token) <= config.MaxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
