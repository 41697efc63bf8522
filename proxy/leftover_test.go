// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

// A connection with an unread body is not reused, because the rest would be read as another request.
func TestUnreadBody_EndsTheConnection(t *testing.T) {
	const dead = "http://127.0.0.1:1" // nothing listens there; a port that was closed could be given out again
	early := answering(t, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
	refuse := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno") // whatever the body is
		io.Copy(io.Discard, conn)
	})
	for name, tt := range map[string]struct {
		upstream, body string
		status         int
	}{
		"nobody reads":        {dead, "Content-Length: 5\r\n\r\nhello", 502},
		"nobody reads chunks": {dead, "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 502},
		"half of it":          {refuse, "Content-Length: 100000\r\n\r\nhello", 401},
		"half of its chunks":  {refuse, "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 401},
		"all of it":           {early, "Content-Length: 5\r\n\r\nhello", 401},
	} {
		var errors bytes.Buffer
		var closed atomic.Bool
		front := httptest.NewUnstartedServer(newProxy(t, tt.upstream, middleware(t, 10, httplimit.Config{}), proxy.Config{ClientTimeout: 2 * time.Second}))
		front.Config.ErrorLog = log.New(&errors, "", 0)
		front.Config.ConnState = func(_ net.Conn, state http.ConnState) { closed.Store(state == http.StateClosed) }
		front.Start()
		conn, from := dial(t, front.URL)
		for i := range 2 {
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\n%s", tt.body)
			resp, err := http.ReadResponse(from, nil)
			if err != nil || resp.StatusCode != tt.status {
				t.Fatalf("%s: got %v (%v), want %d", name, resp, err, tt.status)
			}
			io.Copy(io.Discard, resp.Body)
			if resp.Close {
				until(t, name+": its connection ends, although the client goes on with nothing", closed.Load)
				break
			}
			if i == 1 && !strings.HasPrefix(name, "all") {
				t.Errorf("%s: the connection is used again", name)
			}
		}
		front.Close()
		if errors.Len() > 0 {
			t.Errorf("%s: the server logged %s", name, errors.String())
		}
	}
}
