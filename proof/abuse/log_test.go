// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

// forgedLine is a line as the server would write it.
const forgedLine = `time=2026-01-01T00:00:00.000Z level=ERROR msg="FORGED" owned=true`

// injections are texts that would start a new log line or control a terminal.
var injections = []string{
	"x\r\n" + forgedLine, "x\n" + forgedLine, "x\u2028" + forgedLine, "x\u0085" + forgedLine, "\x1b[2J\x1b[31mFORGED\x1b]0;FORGED\x07", "\x9b31mFORGED",
	`x" level=ERROR msg="FORGED`, `x","level":"ERROR","msg":"FORGED`, "\x00FORGED", "\xff\xfeFORGED", strings.Repeat("FORGED", 2000),
}

// No client input, in any part of a request, can start a log line or control a terminal that shows the
// log.
func TestAbuse_LogInjection(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			own := newIssuer(t)
			gateway := startCanaries(t, own, "log_format: "+format+"\n")
			api := start(t, perAddress("1"), "log_format: "+format+"\nlog_level: debug\ndecision_profile: nginx\ntrusted_proxies: [127.0.0.1]\n")
			for _, injection := range injections {
				injectRaw(t, gateway.Addr, injection)
				injectRaw(t, gateway.AdminAddr, injection)
				injectRaw(t, api.Addr, injection)
				inject(t, gateway, own, injection)
				inject(t, api, own, injection)
			}
			raw(t, gateway.Addr, "GET /", strings.Repeat("FORGED\x1b[31m", 1<<17), " HTTP/1.1\r\n\r\n") // 1 MiB
			for _, s := range []*meted.Server{gateway, api} {
				mustLive(t, s, "injections")
				checkLog(t, s, format)
			}
		})
	}
}

// inject sends it in every place where Go's own client allows it.
func inject(t *testing.T, s *meted.Server, own issuer, injection string) {
	t.Helper()
	field := strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ", "\x1b", " ", "\x07", " ").Replace(injection)
	quoted, _ := json.Marshal(injection)
	text := string(quoted)
	for _, body := range []string{
		`{"attributes":{"ip:address":` + text + `}}`, `{"attributes":{` + text + `:"x"}}`, `{` + text + `:1}`, `{"attributes":{"ip:address":"192.0.2.1"},"id":` + text + `}`,
		injection,
	} {
		for _, url := range []string{s.URL, s.AdminURL} {
			ask(t, http.MethodPost, url+"/v1/take", body)
			ask(t, http.MethodPost, url+"/v1/explain", body, "Authorization", "Bearer "+s.Token())
			ask(t, http.MethodPost, url+"/v1/reset", body, "Authorization", "Bearer "+s.Token())
		}
	}
	override := `{"id":` + text + `,"action":"block","match":{"header:x-api-key":` + text + `},"reason":` + text + `,"author":` + text + `}`
	ask(t, http.MethodPut, s.AdminURL+"/v1/overrides", override, "Authorization", "Bearer "+s.Token())
	ask(t, http.MethodDelete, s.AdminURL+"/v1/overrides/"+url.PathEscape(injection)+"?author="+url.QueryEscape(injection)+"&reason="+url.QueryEscape(injection), "", "Authorization", "Bearer "+s.Token())
	for _, base := range []string{s.URL, s.AdminURL} {
		ask(t, http.MethodGet, base+"/"+url.PathEscape(injection)+"?q="+url.QueryEscape(injection), "",
			"Authorization", "Bearer "+own.sign(t, `{"alg":`+text+`,"kid":`+text+`}`, `{"sub":`+text+`}`), "User-Agent", field, "Referer", field,
			"Cookie", "session="+field, "X-Forwarded-For", field, "X-Request-Id", field, "Traceparent", field,
			"X-Original-URI", "/"+url.PathEscape(injection), "X-Original-Method", field, "X-Original-Host", field)
		ask(t, http.MethodGet, base+"/v1/decision", "", "X-Original-URI", "/"+url.PathEscape(injection), "X-Original-Method", field, "X-Original-Host", field)
	}
}

// injectRaw sends it where only bytes can go.
func injectRaw(t *testing.T, addr, injection string) {
	t.Helper()
	for _, request := range []string{
		injection + " / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /" + injection + " HTTP/1.1\r\nHost: x\r\n\r\n", "GET / " + injection + "\r\nHost: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: " + injection + "\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n" + injection + ": y\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + injection + "\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: " + injection + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " + injection + "\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + injection + "\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + injection + "\r\n\r\n", "\x16\x03\x01" + injection,
	} {
		conn := dial(t, addr)
		if _, err := io.WriteString(conn, request); err == nil {
			conn.(*net.TCPConn).CloseWrite() // so that it waits for no more
			io.Copy(io.Discard, conn)
		}
		conn.Close()
	}
}

// checkLog fails the test unless every line of the log is the server's own.
func checkLog(t *testing.T, s *meted.Server, format string) {
	t.Helper()
	if err := s.Process.Stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	text := s.Log()
	for _, control := range []string{"\x1b", "\x9b", "\x07", "\x00", "\r"} {
		if i := strings.Index(text, control); i >= 0 && control != "\x9b" {
			t.Errorf("the log has %q in it: …%q…", control, text[max(0, i-100):min(len(text), i+100)])
		}
	}
	_, text, _ = strings.Cut(text, "time=") // after the text for humans
	if format == "json" {
		text = s.Log()
	}
	for line := range strings.Lines(text) {
		if len(line) > 16<<10 {
			t.Errorf("a line of %d bytes: %.200q…", len(line), line)
		}
		var record struct{ Level, Msg string }
		switch {
		case format == "json":
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Errorf("a line that is no record: %q: %v", line, err)
			}
			if strings.Contains(record.Msg, "FORGED") && record.Level == "ERROR" {
				t.Errorf("a record with another's message: %s", line)
			}
		case strings.Contains(line, ` msg="FORGED"`) || strings.Contains(line, " msg=FORGED") || strings.Contains(line, " owned=true\n"):
			t.Errorf("a line that a client wrote: %s", line)
		}
	}
}
