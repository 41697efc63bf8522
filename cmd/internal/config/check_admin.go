// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/metehq/mete/httpapi"
)

func (d *decoder) checkAdmin(c *Config) {
	d.checkTLS("tls", c.TLS)
	d.checkTLS("admin_tls", c.AdminTLS)
	d.checkTLS("grpc_tls", c.GRPCTLS)
	d.checkTLS("resp_tls", c.RESPTLS)
	if len(c.AdminTokens) > maxTokens {
		d.fail("admin_tokens", "has %d entries: at most %d are allowed", len(c.AdminTokens), maxTokens)
		return
	}
	names, secrets := map[string]bool{}, map[string]bool{}
	for i := range c.AdminTokens {
		t, key := &c.AdminTokens[i], fmt.Sprintf("admin_tokens[%d]", i)
		if slices.ContainsFunc(d.errors, func(e Error) bool { return e.Key == key }) {
			continue // not a mapping
		}
		switch {
		case t.Name == "":
			d.fail(key+".name", "is required: the log and the audit trail show it")
		case len(t.Name) > maxTokenName:
			d.fail(key+".name", "must be at most %d bytes long", maxTokenName)
		case names[t.Name]:
			d.fail(key+".name", "%q is also the name of another token", t.Name)
		}
		names[t.Name] = true
		if t.Role == httpapi.RoleNone {
			d.fail(key+".role", `must be read, operate or configure, not ""`)
		}
		d.checkToken(key, t)
		if secrets[t.Token] {
			d.fail(key+".token", "is also the token of another name")
		}
		secrets[t.Token] = true
	}
	if len(c.AdminTokens) == 0 {
		d.checkOpenAddresses(c)
	}
}

// checkOpenAddresses rejects addresses that let every machine change buckets. It is called if there are no tokens.
func (d *decoder) checkOpenAddresses(c *Config) {
	if !isLoopback(c.AdminListen) {
		d.fail("admin_listen", "%q is reachable from other machines: set admin_tokens, or listen on 127.0.0.1", c.AdminListen)
	}
	if !isLoopback(c.GRPCListen) && !c.GRPCTLS.On() {
		d.fail("grpc_listen", "%q is reachable from other machines: set admin_tokens or grpc_tls, or listen on 127.0.0.1", c.GRPCListen)
	}
	if !isLoopback(c.RESPListen) && c.RESPTLS.ClientCA == "" {
		d.fail("resp_listen", "%q is reachable from other machines: set admin_tokens or resp_tls.client_ca, or listen on 127.0.0.1", c.RESPListen)
	}
}

// RequiresToken reports whether callers of a gRPC or RESP address need one of admin_tokens. Callers of a loopback
// address and callers with a client certificate need none.
func (c *Config) RequiresToken(address string, t TLS) bool {
	return len(c.AdminTokens) > 0 && !isLoopback(address) && t.ClientCA == ""
}

// checkToken reads the token from its file, if set, and validates it.
func (d *decoder) checkToken(key string, t *AdminToken) {
	switch {
	case t.Token != "" && t.File != "":
		d.fail(key+".token_file", "excludes token: set one of them")
		return
	case t.Token == "" && t.File == "":
		d.fail(key+".token", "is required: at least %d random bytes, for example from 'openssl rand -hex 32'", MinToken)
		return
	case t.File != "":
		var err error
		if t.Token, err = ReadToken(t.File); err != nil {
			d.fail(key+".token_file", "%v", err)
		}
		return
	}
	if !isValidToken(t.Token) {
		d.fail(key+".token", "%s", tokenForm)
	}
}

func (d *decoder) checkTLS(key string, t TLS) {
	switch {
	case (t.Cert == "") != (t.Key == ""):
		d.fail(key, "needs both cert and key")
	case t.ClientCA != "" && t.Cert == "":
		d.fail(key+".client_ca", "needs cert and key: client certificates require TLS")
	}
	for _, f := range []struct{ name, path string }{{"cert", t.Cert}, {"key", t.Key}, {"client_ca", t.ClientCA}} {
		if f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); err != nil {
			d.fail(key+"."+f.name, "%v", err)
		}
	}
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return true // another check reports the error
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
