// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"io"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/respapi"
)

// Clients depend on the errors of Redis. The cases are those of its tests/unit/protocol.tcl, and more.
func TestRedis_SameBytes(t *testing.T) {
	redis := proctest.StartRedis(t)
	_, _, addr := start(t, "", respapi.Config{})
	big := strings.Repeat("payload", 10_000) // above the bound of a line
	for _, text := range []string{
		"\r\nPING\r\n", "*-10\r\nPING\r\n", "*0\r\nPING\r\n", "*3000000000\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n",
		"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n",
		"*1\r\nfoo\r\n", "*3\r\n$3\r\nSET\r\n:1\r\n", "*01\r\n", "*+1\r\n", "*-0\r\n", "*\r\n", "*x\r\n", "*1\r\n$\r\n", "*1\r\n$01\r\n",
		"*1\r\n$9223372036854775807\r\nx\r\n", "PING x y z\r\n", "*4\r\n$4\r\nPING\r\n$1\r\nx\r\n$1\r\ny\r\n$1\r\nz\r\n",
		"ECHO \"open\r\n", "ECHO 'open\r\n", "ECHO \"a\"b\r\n", "ECHO 'a'b\r\n", `ECHO "\x41\n\t\"\\z"` + "\r\n", `ECHO 'it\'s \n'` + "\r\n", "ECHO a\"b c\"\r\n",
		"  PING  \r\n", "PING\n", "ECHO\ta\vb\r\n", "NOTHING a b\r\n", "ECHO\r\n", "echo a\r\n",
		"NOTHING " + strings.Repeat("a", 100) + " " + strings.Repeat("b", 100) + " c\r\n", strings.Repeat("n", 200) + " x\r\n",
		"*2\r\n$3\r\nfoo\r\n$4\r\na\r\nb\r\n", "SELECT 0\r\n", "SELECT x\r\n", "HELLO 4\r\n", "HELLO x\r\n", "HELLO 3 WHAT\r\n", "HELLO 3 AUTH x\r\n",
		"AUTH a b c\r\n", "AUTH default x\r\n", "AUTH other x\r\n", "AUTH x\r\n", "RESET\r\n", "QUIT\r\n", "CLIENT SETNAME a\r\nCLIENT GETNAME\r\n",
		"CLIENT GETNAME\r\n", "CLIENT SETNAME \"a b\"\r\n", "CLIENT NOTHING\r\n", "CLIENT NO-EVICT on\r\n", "CLIENT ID x\r\n", "POST / HTTP/1.1\r\n", "Host: x\r\n",
		"*" + big, "*1\r\n$" + big, big, "*1\r\n$4\r\nQUIT\r\nPING\r\n",
	} {
		var replies [2]string
		for i, at := range []string{redis.Addr, addr} {
			p := dial(t, at)
			io.WriteString(p, text)
			if strings.HasSuffix(text, "\n") {
				io.WriteString(p, "QUIT\r\n")
			}
			rest, _ := io.ReadAll(p.r) // a reset is an end
			replies[i] = string(rest)
		}
		if replies[0] != replies[1] {
			t.Errorf("%.100q:\nRedis %q\nmete  %q", text, replies[0], replies[1])
		}
	}
}
