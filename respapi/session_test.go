// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"context"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/respapi"
)

func TestSession(t *testing.T) {
	p, _, addr := start(t, "", respapi.Config{})
	for _, tt := range []struct{ command, want string }{
		{"PING", "+PONG"},
		{"ping hi", "hi"},
		{"PING x y z", "-ERR wrong number of arguments for 'ping' command"},
		{"ECHO hi", "hi"},
		{"ECHO", "-ERR wrong number of arguments for 'echo' command"},
		{"SELECT 0", "+OK"},
		{"SELECT 1", "-ERR DB index is out of range"},
		{"SELECT x", "-ERR value is not an integer or out of range"},
		{"GET key", "-ERR unknown command 'GET', with args beginning with: 'key' "},
		{"CLIENT GETNAME", "$-1"},
		{"CLIENT SETNAME app", "+OK"},
		{"CLIENT GETNAME", "app"},
		{"CLIENT SETINFO LIB-NAME lib", "+OK"},
		{"CLIENT SETINFO lib-ver 1.0", "+OK"},
		{"CLIENT SETINFO lib-x 1.0", "-ERR Unrecognized option 'lib-x'"},
		{"CLIENT NO-EVICT on", "+OK"},
		{"CLIENT NO-TOUCH off", "+OK"},
		{"CLIENT NO-TOUCH maybe", "-ERR syntax error"},
		{"CLIENT ID", "1"},
		{"CLIENT ID 1", "-ERR wrong number of arguments for 'client|id' command"},
		{"CLIENT TRACKING ON OPTIN", "-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP."},
		{"CLIENT MAINT_NOTIFICATIONS ON", "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP."},
		{"CONFIG GET save", "*[save,]"},
		{"CONFIG GET appendonly", "*[appendonly,no]"},
		{"CONFIG GET maxmemory", "*[]"},
		{"CONFIG SET save x", "-ERR unknown subcommand 'SET'. Try CONFIG HELP."},
		{"COMMAND COUNT", "21"},
		{"COMMAND INFO ping nothing", "*[*[ping,-1,*[+fast],0,0,0],$-1]"},
		{"COMMAND INFO cl.throttle", "*[*[cl.throttle,-1,*[+fast],1,1,1]]"},
		{"COMMAND DOCS echo none", "*[echo,*[summary,Return the argument.,group,generic]]"},
		{"COMMAND X", "-ERR unknown subcommand 'X'. Try COMMAND HELP."},
		{"AUTH secret", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"},
		{"AUTH default x", "+OK"},
		{"AUTH other x", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"HELLO 4", "-NOPROTO unsupported protocol version"},
		{"HELLO x", "-ERR Protocol version is not an integer or out of range"},
		{"HELLO 3 WHAT", "-ERR Syntax error in HELLO option 'WHAT'"},
		{"HELLO 2", "*[server,redis,version,7.2.0,proto,2,id,1,mode,standalone,role,master,modules,*[]]"},
		{"HELLO 3 SETNAME other", "%[server,redis,version,7.2.0,proto,3,id,1,mode,standalone,role,master,modules,*[]]"},
		{"CLIENT GETNAME", "other"},
		{"CONFIG GET save", "%[save,]"},
		{"CL.THROTTLE k 15 30 60", "*[0,16,15,-1,2]"},
		{"RESET", "+RESET"},
		{"CLIENT GETNAME", "$-1"},
		{"HELLO", "*[server,redis,version,7.2.0,proto,2,id,1,mode,standalone,role,master,modules,*[]]"},
	} {
		p.want(tt.want, strings.Fields(tt.command)...)
	}
	p.send("QUIT\r\nPING\r\n")
	p.wantClosed("+OK\r\n")
	for _, word := range []string{"POST", "Host:"} { // a browser
		p = dial(t, addr)
		p.send(word + " / HTTP/1.1\r\nCL.THROTTLE k 1 1 1\r\n")
		p.wantClosed("")
	}
}

func TestInfo(t *testing.T) {
	p, _, addr := start(t, "", respapi.Config{Version: "1.2.3"})
	_, port, _ := strings.Cut(addr, ":")
	all := p.do("INFO")
	for _, want := range []string{"# Server\r\nredis_version:7.2.0\r\n", "mete_version:1.2.3\r\n", "tcp_port:" + port + "\r\n", "loading:0\r\n",
		"role:master\r\nconnected_slaves:0\r\n", "connected_clients:1\r\n", "maxclients:10000\r\n", "cluster_enabled:0\r\n"} {
		if !strings.Contains(all, want) {
			t.Errorf("INFO lacks %q: %s", want, all)
		}
	}
	if got := p.do("INFO", "replication", "Persistence"); !strings.HasPrefix(got, "# Persistence\r\nloading:0\r\n") || !strings.Contains(got, "\r\n\r\n# Replication\r\nrole:master\r\n") || strings.Contains(got, "# Server") {
		t.Errorf("two sections: got %q", got)
	}
	if got := p.do("INFO", "nothing"); got != "" {
		t.Errorf("an unknown section: got %q", got)
	}
}

func TestRoles(t *testing.T) {
	var address string
	config := respapi.Config{Authenticate: func(_ context.Context, login respapi.Login) (respapi.Role, bool) {
		address = login.Address
		role := map[string]respapi.Role{"default": respapi.RoleOperate, "reader": respapi.RoleRead, "admin": respapi.RoleOperate + 1, "taker": respapi.RoleTake}[login.User]
		return role, login.Password == "secret"
	}}
	p, _, addr := start(t, perUser, config)
	for _, tt := range []struct{ command, want string }{
		{"PING", "-NOAUTH Authentication required."},
		{"CL.THROTTLE k 1 1 1", "-NOAUTH Authentication required."},
		{"GET x", "-ERR unknown command 'GET', with args beginning with: 'x' "},
		{"HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"HELLO 3 AUTH reader wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH a b c", "-ERR syntax error"},
		{"AUTH reader secret", "+OK"},
		{"METE.PEEK user a", "*[0,2,2,-1,0,users,,0,*[]]"},
		{"METE.TAKE user a", "-NOPERM User reader has no permissions to run the 'mete.take' command; it requires the role take"},
		{"CL.THROTTLE k 1 1 1", "-NOPERM User reader has no permissions to run the 'cl.throttle' command; it requires the role take"},
		{"METE.RESET user a", "-NOPERM User reader has no permissions to run the 'mete.reset' command; it requires the role operate"},
		{"METE.REFUND user a", "-NOPERM User reader has no permissions to run the 'mete.refund' command; it requires the role operate"},
		{"AUTH nobody secret", "+OK"},
		{"METE.PEEK user a", "-NOPERM User nobody has no permissions to run the 'mete.peek' command; it requires the role read"},
		{"AUTH taker secret", "+OK"},
		{"CL.THROTTLE k 1 1 1", "*[0,2,1,-1,1]"},
		{"METE.TAKE user t", "*[0,2,1,-1,1,users,,0,*[]]"},
		{"METE.PEEK user t", "*[0,2,1,-1,1,users,,0,*[]]"},
		{"METE.RESET user t", "-NOPERM User taker has no permissions to run the 'mete.reset' command; it requires the role operate"},
		{"METE.REFUND user t", "-NOPERM User taker has no permissions to run the 'mete.refund' command; it requires the role operate"},
		{"HELLO 3 AUTH default secret", "%[server,redis,version,7.2.0,proto,3,id,1,mode,standalone,role,master,modules,*[]]"},
		{"METE.TAKE user a", "*[0,2,1,-1,1,users,,0,*[]]"},
		{"RESET", "+RESET"},
		{"PING", "-NOAUTH Authentication required."},
		{"AUTH admin secret", "+OK"},
		{"METE.RESET user a", "+OK"},
	} {
		p.want(tt.want, strings.Fields(tt.command)...)
	}
	if want := p.LocalAddr().String(); address != want {
		t.Errorf("Authenticate got the address %s, want %s", address, want)
	}
	for _, text := range []string{"*11\r\n", "*1\r\n$16385\r\n", "PING 1 2 3 4 5 6 7 8 9 10\r\n", strings.Repeat("x", 17<<10), "*3\r\n" + strings.Repeat("$16000\r\n"+strings.Repeat("x", 16000)+"\r\n", 3)} {
		p := dial(t, addr)
		p.send(text)
		if got := p.read(); !strings.HasPrefix(got, "-ERR Protocol error: ") {
			t.Errorf("%.40q of a stranger: got %s", text, got)
		}
		p.wantClosed("")
	}
}

// Clients that need no token may take and peek. AUTH gives them the role of a token.
func TestRoles_Anonymous(t *testing.T) {
	const one = "*[0,2,1,-1,1,users,,0,*[]]"
	const denied = "-NOPERM User default has no permissions to run the 'mete.refund' command; it requires the role operate"
	authenticate := func(_ context.Context, login respapi.Login) (respapi.Role, bool) {
		return respapi.RoleOperate, login.Password == "secret"
	}
	for _, tt := range []struct {
		what          string
		config        respapi.Config
		refund, login string
	}{
		{"without Authenticate", respapi.Config{}, denied, "+OK"},
		{"with Authenticate", respapi.Config{Anonymous: respapi.RoleTake, Authenticate: authenticate}, denied, "-WRONGPASS invalid username-password pair or user is disabled."},
		{"as operator", respapi.Config{Anonymous: respapi.RoleOperate}, "+OK", "+OK"},
	} {
		p, _, _ := start(t, perUser, tt.config)
		p.want(one, "METE.TAKE", "user", "a")
		p.want(one, "METE.PEEK", "user", "a")
		p.want(tt.refund, "METE.REFUND", "user", "a")
		p.want(tt.login, "AUTH", "default", "wrong")
		p.want(tt.refund, "METE.REFUND", "user", "a")
		if tt.config.Authenticate != nil {
			p.want("+OK", "AUTH", "secret")
			p.want("+OK", "METE.REFUND", "user", "a")
			p.want("+RESET", "RESET")
			p.want(tt.refund, "METE.REFUND", "user", "a")
		}
	}
	for _, wrong := range []respapi.Role{-1, respapi.RoleOperate + 1} {
		if _, err := respapi.New(newLimiter(t, newModel(), "", mete.Config{}), respapi.Config{Anonymous: wrong}); err == nil {
			t.Errorf("New accepts the role %d", wrong)
		}
	}
}
