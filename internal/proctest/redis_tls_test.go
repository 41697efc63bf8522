// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"crypto/tls"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

func TestStartRedisTLS(t *testing.T) {
	r, config := proctest.StartRedisTLS(t, "--tls-auth-clients", "yes")
	do(t, r, "PONG", "PING")
	conn, err := tls.Dial("tcp", r.Addr, config)
	if err != nil {
		t.Fatalf("with its own certificates: %v", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Error(err)
	}
	if n, err := conn.Read(make([]byte, 100)); err != nil {
		t.Errorf("read %d bytes: %v, want an answer", n, err)
	}
	if conn, err := tls.Dial("tcp", r.Addr, &tls.Config{ServerName: "localhost"}); err == nil {
		conn.Close()
		t.Error("a client that does not know the server's certificate trusts it")
	}
	r.Restart()
	do(t, r, "PONG", "PING")
}
