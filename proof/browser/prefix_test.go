// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/browser"
	"github.com/metehq/mete/proof/meted"
)

const prefix = "/some/prefix/"

// behindNginx returns where nginx serves an address under the prefix, with no setting
// but that.
func behindNginx(t *testing.T, upstream string) string {
	t.Helper()
	addr, dir := proctest.FreeAddr(t), t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, `
		worker_processes 1; pid nginx.pid; error_log stderr;
		events { worker_connections 64; }
		http {
			access_log off;
			client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
			server {
				listen %s;
				location %s { proxy_pass http://%s/; }
			}
		}`, addr, prefix, upstream), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(proctest.Find(t, "nginx", "nginx"), "-p", dir, "-c", file, "-e", "stderr", "-g", "daemon off; master_process off;")
	proctest.Start(t, cmd).WaitReady(meted.Patience, proctest.TCP(addr))
	return "http://" + addr
}

// Behind a gateway that serves it under a path, all works: pages, streams, the API,
// and the way there.
func TestPrefix(t *testing.T) {
	t.Parallel()
	site := visited(t)
	front := behindNginx(t, site.AdminAddr)
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Tolerate("status of 401")
	page.Goto(front + prefix)
	page.SignIn(browser.OperateToken)
	if got, want := page.URL(), front+prefix+"dashboard/"; got != want {
		t.Errorf("%s leads to %s, want %s", prefix, got, want)
	}
	for _, r := range routes {
		await(page, front+prefix+"dashboard/#/"+r.route, r.heading)
	}
	page.Goto(front + prefix + "dashboard/#/keys")
	page.WaitText("#main", "alice") // from the API
	page.Poll("it goes on by itself", "import('./shell/live.js').then(m => new Promise(resolve => m.live.on('samples', () => resolve(true))))")
	if got := browser.Eval[int](page, "performance.getEntriesByType('resource').filter(e => !new URL(e.name).pathname.startsWith("+browser.JS(prefix)+")).length"); got != 0 {
		t.Errorf("%d requests leave the prefix", got)
	}
}
