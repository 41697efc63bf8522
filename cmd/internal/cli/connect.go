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

// tokenVariable is the name of the environment variable that holds a token for the admin API.
const tokenVariable = "METE_TOKEN"

// connectionFlag is the annotation of the flags in [connection].
const connectionFlag = "mete_connection"

const connectionAbout = `
Commands that call a running server share these flags. A server on this machine
writes a token to a file that only its user can read, and the commands find it.
--server is the main address for mete take, peek and health. For other commands
it is the admin address.
`

type connection struct {
	server           string
	tokenFile        string
	ca, cert, tlsKey string
}

// flags returns the connection flags; server is the default of --server.
func (c *connection) flags(server string) *pflag.FlagSet {
	fs := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	fs.StringVar(&c.server, "server", server, "`URL` of the server")
	fs.StringVar(&c.tokenFile, "token-file", "", "send the token in `FILE` (default: $"+tokenVariable+", or the token that a server on this machine left for you)")
	fs.StringVar(&c.ca, "ca", "", "trust only servers with a certificate from a CA in `FILE`, in PEM")
	fs.StringVar(&c.cert, "cert", "", "send the client certificate in `FILE`, in PEM")
	fs.StringVar(&c.tlsKey, "tls-key", "", "the `FILE` with the private key of --cert, in PEM")
	fs.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{connectionFlag: {}} })
	return fs
}

func connectionHelp() string {
	var c connection
	return strings.TrimPrefix(connectionAbout, "\n") + "\nConnection flags:\n" + c.flags("").FlagUsagesWrapped(helpWidth)
}

// The default servers of commands: mainURL serves decisions and adminURL serves the admin API.
func mainURL() string  { return "http://" + config.Default().Listen }
func adminURL() string { return "http://" + config.Default().AdminListen }

// An endpoint is the address of a server with a transport and a token for it.
type endpoint struct {
	http  *http.Client
	token string
}

func (c *connection) endpoint() (*endpoint, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if err := c.loadCertificates(transport); err != nil {
		return nil, err
	}
	token, err := c.loadToken(transport)
	if err != nil {
		return nil, err
	}
	return &endpoint{&http.Client{Timeout: client.DefaultTimeout, Transport: transport}, token}, nil
}

func (c *connection) newClient() (*client.Client, error) {
	r, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	return r.newClient(c.server)
}

// newClient returns a client that uses the endpoint's transport and token.
func (r *endpoint) newClient(server string) (*client.Client, error) {
	made, err := client.New(server, r.http)
	if err != nil {
		return nil, fmt.Errorf("--server: %w", trimPackage(err))
	}
	return made.WithToken(r.token), nil
}

func (c *connection) loadCertificates(t *http.Transport) error {
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
		return errors.New("--cert and --tls-key require each other")
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.tlsKey)
	if err != nil {
		return fmt.Errorf("--cert: %w", err)
	}
	t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	return nil
}

// loadToken returns the token from --token-file, from METE_TOKEN or from the file that a local server wrote, or
// "". With the token of a local server, t connects to that server only.
func (c *connection) loadToken(t *http.Transport) (string, error) {
	if c.tokenFile != "" {
		text, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		token := strings.TrimSpace(string(text))
		if !isToken(token) {
			return "", fmt.Errorf("--token-file: %s holds no token", c.tokenFile)
		}
		return token, nil
	}
	if token := strings.TrimSpace(os.Getenv(tokenVariable)); token != "" {
		if !isToken(token) {
			return "", fmt.Errorf("$%s holds no token", tokenVariable)
		}
		return token, nil
	}
	u, err := url.Parse(c.server)
	if err != nil {
		return "", nil // the server then rejects the request with a precise error
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

// isToken reports whether an HTTP header can carry the token and a server can accept it.
func isToken(token string) bool {
	return token != "" && len(token) <= config.MaxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
