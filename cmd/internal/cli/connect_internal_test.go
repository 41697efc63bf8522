// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/admintoken"
)

// The token of a local server goes only to that server, and not to another program on the same port.
func TestConnection_FindsTheToken(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv(tokenVariable, "")
	tokens := map[string]string{"": ""}
	for _, address := range []string{"127.0.0.1:8081", "[::1]:9000", "127.0.0.1:80"} {
		f, err := admintoken.Create(address)
		if err != nil {
			t.Fatal(err)
		}
		tokens[address] = f.Token
	}
	for _, tt := range []struct{ server, address, dials string }{
		{"http://127.0.0.1:8081", "127.0.0.1:8081", "127.0.0.1:8081"},
		{"http://127.0.0.1:8081/", "127.0.0.1:8081", "127.0.0.1:8081"},
		{"http://localhost:8081", "127.0.0.1:8081", "127.0.0.1:8081"},
		{"http://[::1]:9000", "[::1]:9000", "[::1]:9000"},
		{"http://localhost:9000", "[::1]:9000", "[::1]:9000"},
		{"http://127.0.0.1", "127.0.0.1:80", "127.0.0.1:80"},
		{"http://[::1]:8081", "", "[::1]:8081"},
		{"http://mete.example:8081", "", "mete.example:8081"},
		{"https://127.0.0.1", "", "127.0.0.1:443"},
	} {
		dialed, enough := "", errors.New("enough")
		transport := &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = address
			return nil, enough
		}}
		c := connection{server: tt.server}
		token, err := c.loadToken(transport)
		if err != nil || token != tokens[tt.address] {
			t.Errorf("%s: token %q, %v; want the one of %q", tt.server, token, err, tt.address)
		}
		if _, err := (&http.Client{Transport: transport}).Get(tt.server); !errors.Is(err, enough) || dialed != tt.dials {
			t.Errorf("%s: goes to %s, %v; want %s", tt.server, dialed, err, tt.dials)
		}
	}
}

// An explicit token takes precedence over a token file.
func TestConnection_TokenThatIsSaid(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if _, err := admintoken.Create("127.0.0.1:8081"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(" from-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tokenVariable, "from-the-environment\n")
	for _, tt := range []struct{ file, want string }{{file, "from-the-file"}, {"", "from-the-environment"}} {
		c := connection{server: "http://127.0.0.1:8081", tokenFile: tt.file}
		if token, err := c.loadToken(new(http.Transport)); err != nil || token != tt.want {
			t.Errorf("--token-file %q: token %q, %v; want %q", tt.file, token, err, tt.want)
		}
	}
	for _, text := range []string{"", "\n", "one\ntwo", "t\u00f6ken", strings.Repeat("x", 1025)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := connection{server: "http://127.0.0.1:8081", tokenFile: file}
		if token, err := c.loadToken(new(http.Transport)); err == nil {
			t.Errorf("--token-file with %.20q: token %q, want an error", text, token)
		}
	}
	t.Setenv(tokenVariable, "one\ntwo")
	if token, err := (&connection{server: "http://127.0.0.1:8081"}).loadToken(new(http.Transport)); err == nil || strings.Contains(err.Error(), "two") {
		t.Errorf("two lines in the environment: token %q, %v; want an error without them", token, err)
	}
}
