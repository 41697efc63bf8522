// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/cli"
	"github.com/metehq/mete/internal/proctest"
)

// The log of the server is never read, although every request has a log line. The server still decides,
// counts lost lines and shuts down.
func TestServe_NobodyReadsTheLog(t *testing.T) {
	unread, errs := io.Pipe()
	t.Cleanup(func() { unread.Close() })
	announced, out := io.Pipe()
	main, admin := proctest.FreeAddr(t), proctest.FreeAddr(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(ctx, []string{"serve", "--listen", main, "--admin-listen", admin, "--log-level", "debug"}, cli.Streams{Out: out, Err: errs})
		out.Close()
	}()
	if _, err := bufio.NewReader(announced).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, announced)

	const clients = 3000
	for i := range clients { // the first denials of so many keys
		body := fmt.Sprintf(`{"requests":[%s]}`, strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"attributes":{"ip:address":"10.0.%d.%d"},"cost":10},`, i/250, i%250), 3), ","))
		resp, err := http.Post("http://"+main+"/v1/take", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("request %d: got %s", i, resp.Status)
		}
	}
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "mete_log_lines_total") {
		t.Errorf("the metrics are %v %s, want the lines of the log", err, text)
	}
	stop()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("it ended with %d", code)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}
