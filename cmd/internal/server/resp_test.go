// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
)

// onLoopbackAt returns the loopback address with the port of an address.
func onLoopbackAt(at net.Addr) string {
	_, port, _ := net.SplitHostPort(at.String())
	return net.JoinHostPort("127.0.0.1", port)
}

// sendRESP sends inline commands to a new connection, and returns the text of all replies.
func sendRESP(address string, c *tls.Config, commands ...string) (string, error) {
	var conn net.Conn
	var err error
	if c == nil {
		conn, err = net.Dial("tcp", address)
	} else {
		conn, err = tls.Dial("tcp", address, c)
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprint(conn, strings.Join(commands, "\r\n")+"\r\nQUIT\r\n"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}

// roleCommands are commands with the lowest role that may send them: 1 for read, 2 for take, 3 for operate.
var roleCommands = []struct {
	command string
	lowest  int
}{
	{"METE.PEEK header:who a", 1},
	{"METE.TAKE header:who a", 2},
	{"CL.THROTTLE key 15 30 60", 2},
	{"METE.REFUND header:who a", 3},
	{"METE.RESET header:who a", 3},
}

// checkRESPRole reports commands that a client with these first commands may send, or may not, against its role.
func checkRESPRole(t *testing.T, address, name string, role int, first ...string) {
	t.Helper()
	for _, c := range roleCommands {
		text, err := sendRESP(address, nil, append(first, c.command)...)
		if err != nil {
			t.Fatal(err)
		}
		refusal := "-NOPERM"
		if role == 0 {
			refusal = "-NOAUTH"
		}
		if refused := strings.Contains(text, refusal); refused != (role < c.lowest) || !refused && strings.Contains(text, "-ERR") {
			t.Errorf("%s, %s: %q, refused %t, want %t", name, c.command, text, refused, role < c.lowest)
		}
	}
}

// Each token has its role, and a client without one may do nothing at an address of other machines.
func TestRESP_Roles(t *testing.T) {
	t.Parallel()
	c := withTokens()
	c.Policy, c.RESPListen = policyFile(t, strings.ReplaceAll(burst("100"), "ip:address", "header:who")), "0.0.0.0:0"
	s := start(t, c)
	at := onLoopbackAt(s.server.RESPAddr())
	for _, tt := range []struct {
		name  string
		first []string
		role  int
	}{
		{"no token", nil, 0},
		{"a wrong token", []string{"AUTH wrong-0123456789abcdef"}, 0},
		{"an empty token", []string{`AUTH ""`}, 0},
		{"read", []string{"AUTH " + readerToken}, 1},
		{"operate", []string{"AUTH any " + operatorToken}, 3},
		{"configure", []string{"HELLO 3 AUTH any " + ownerToken}, 3},
		{"a wrong token after a valid one", []string{"AUTH " + readerToken, "AUTH wrong"}, 1},
	} {
		checkRESPRole(t, at, tt.name, tt.role, tt.first...)
	}
	if text := s.log.String(); strings.Contains(text, operatorToken) || strings.Contains(text, "wrong-") {
		t.Error("the log has a token")
	}
	if got := s.log.Count(`msg="bucket changed by a RESP client"`); got != 4 {
		t.Errorf("the log has %d changes, want 4", got)
	}
}

// A client of a loopback address may take and peek without a token. A token gives it more, or less.
func TestRESP_Loopback(t *testing.T) {
	t.Parallel()
	c := withTokens()
	c.Policy, c.RESPListen = policyFile(t, strings.ReplaceAll(burst("100"), "ip:address", "header:who")), "127.0.0.1:0"
	s := start(t, c)
	at := s.server.RESPAddr().String()
	checkRESPRole(t, at, "no token", 2)
	checkRESPRole(t, at, "a wrong token", 2, "AUTH wrong")
	checkRESPRole(t, at, "read", 1, "AUTH "+readerToken)
	checkRESPRole(t, at, "operate", 3, "AUTH "+operatorToken)
}

// A client certificate replaces the token, but permits no more than a loopback address.
func TestRESP_ClientCertificates(t *testing.T) {
	t.Parallel()
	c := withTokens()
	var known *tls.Config
	c.RESPTLS, known = certified(t, t.TempDir())
	c.RESPTLS.ClientCA = c.RESPTLS.Cert
	c.RESPListen = "0.0.0.0:0"
	s := start(t, c)
	at := onLoopbackAt(s.server.RESPAddr())
	text, err := sendRESP(at, known, "CL.THROTTLE key 15 30 60", "METE.RESET header:who a")
	if err != nil || !strings.HasPrefix(text, "*5\r\n") || !strings.Contains(text, "-NOPERM") {
		t.Errorf("with a certificate: %q, %v", text, err)
	}
	nobody := known.Clone()
	nobody.Certificates = nil
	if text, err := sendRESP(at, nobody, "PING"); err == nil && text != "" {
		t.Errorf("without a certificate: %q, want no reply", text)
	}
	if text, _ := sendRESP(at, nil, "PING"); strings.Contains(text, "PONG") {
		t.Errorf("in plain text: %q, want no reply", text)
	}
}

// Wrong passwords never lock out a valid token from the same address.
func TestRESP_WrongPasswords(t *testing.T) {
	t.Parallel()
	c := withTokens()
	c.RESPListen = "0.0.0.0:0"
	s := start(t, c)
	commands := make([]string, 11)
	for i := range commands {
		commands[i] = fmt.Sprintf("AUTH wrong-%d", i)
	}
	at := onLoopbackAt(s.server.RESPAddr())
	text, err := sendRESP(at, nil, append(commands, "AUTH "+readerToken)...)
	if err != nil || strings.Count(text, "-WRONGPASS") != len(commands) || !strings.HasSuffix(text, "+OK\r\n+OK\r\n") {
		t.Errorf("%d wrong tokens and a valid one: %q, %v", len(commands), text, err)
	}
}

// The files of the certificates of all protocols are followed.
func TestProtocols_CertificatesChange(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		open func(c *config.Config, files config.TLS)
		ask  func(s *running, c *tls.Config) error
	}{
		"grpc": {
			func(c *config.Config, files config.TLS) { c.GRPCListen, c.GRPCTLS = "127.0.0.1:0", files },
			func(s *running, c *tls.Config) error { return checkHealth(t, dialGRPC(t, s.server.GRPCAddr(), c)) },
		},
		"resp": {
			func(c *config.Config, files config.TLS) { c.RESPListen, c.RESPTLS = "127.0.0.1:0", files },
			func(s *running, c *tls.Config) error {
				_, err := sendRESP(s.server.RESPAddr().String(), c, "PING")
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, c := t.TempDir(), testConfig()
			files, before := certified(t, dir)
			tt.open(&c, files)
			s := start(t, c)
			if err := tt.ask(s, before); err != nil {
				t.Errorf("the first certificate: %v", err)
			}
			_, after := certified(t, dir)
			s.await("the new certificate", func() error { return tt.ask(s, after) })
			if err := tt.ask(s, before); err == nil {
				t.Error("the old certificate is still used")
			}
		})
	}
}
