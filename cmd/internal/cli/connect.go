// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/admintoken"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/smallfile"
)

// tokenVariable is the environment variable with a token for the admin API.
const tokenVariable = "METE_TOKEN"

// connectionFlag is the annotation of the flags that all commands share which ask a server.
const connectionFlag = "mete_connection"

const connectionAbout = `
Commands that ask a running server share these flags. A server on this machine
leaves a token in a file that only its user can read, and the commands find it.
--server is the main address for mete take, peek and health. For other commands
it is the admin address.
`

// A connection is how a command reaches a server.
type connection struct {
	server           string
	tokenFile        string
	ca, cert, tlsKey string
}

// flags returns the connection flags. The default of --server is the one given.
func (c *connection) flags(server string) *pflag.FlagSet {
	fs := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	fs.StringVar(&c.server, "server", server, "`URL` of the server")
	fs.StringVar(&c.tokenFile, "token-file", "", "send the token in `FILE` (default: $"+tokenVariable+", or the token that a server on this machine left for you)")
	fs.StringVar(&c.ca, "ca", "", "trust only servers whose certificate is signed by an authority in `FILE`, in PEM")
	fs.StringVar(&c.cert, "cert", "", "send the client certificate in `FILE`, in PEM")
	fs.StringVar(&c.tlsKey, "tls-key", "", "the `FILE` with the private key of --cert, in PEM")
	fs.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{connectionFlag: {}} })
	return fs
}

// connectionHelp is the topic "connection".
func connectionHelp() string {
	var c connection
	return strings.TrimPrefix(connectionAbout, "\n") + "\nConnection flags:\n" + c.flags("").FlagUsagesWrapped(helpWidth)
}

// The default servers of commands: the main address, or the admin one.
func mainURL() string  { return "http://" + config.Default().Listen }
func adminURL() string { return "http://" + config.Default().AdminListen }

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
		var err error
		if t.TLSClientConfig.RootCAs, err = smallfile.Authorities(c.ca); err != nil {
			return fmt.Errorf("--ca: %w", err)
		}
	}
	switch {
	case c.cert == "" && c.tlsKey == "":
		return nil
	case c.cert == "" || c.tlsKey == "":
		return errors.New("--cert and --tls-key: say both")
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.tlsKey)
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
