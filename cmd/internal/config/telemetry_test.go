// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/config"
)

func TestLoad_Telemetry(t *testing.T) {
	t.Setenv("OTLP_TOKEN", "secret")
	for _, tt := range []struct{ text, mistake string }{
		{"telemetry: {endpoint: \"https://otlp.example.com/base\", headers: [\"authorization=Bearer ${OTLP_TOKEN}\", x=], sample: 1, interval: 0}\ndenial_log: {interval: 0, raw: true}\n", ""},
		{"telemetry: {sample: 0.25, interval: 1s}\n", ""},
		{"telemetry: {endpoint: localhost:4318}\n", "telemetry.endpoint"},
		{"telemetry: {endpoint: \"http://user:secret@localhost:4318\"}\n", "secrets belong in telemetry.headers"},
		{"telemetry: {endpoint: \"http://localhost:4318?x=1\"}\n", "telemetry.endpoint"},
		{"telemetry: {headers: [\"=secret\"]}\n", "number 1 is not name=value"},
		{"telemetry: {headers: [a=b, \"x y=secret\"]}\n", "number 2 is not name=value"},
		{"telemetry: {headers: [\"x=sec\\nret\"]}\n", "number 1 is not name=value"},
		{"telemetry: {headers: [" + strings.Repeat("a=b,", 16) + "a=b]}\n", "at most 16"},
		{"telemetry: {sample: 1.01}\n", "between 0 and 1"},
		{"telemetry: {sample: -0.1}\n", "between 0 and 1"},
		{"telemetry: {sample: NaN}\n", "between 0 and 1"},
		{"telemetry: {sample: often}\n", "is not a number"},
		{"telemetry: {interval: 10ms}\n", "telemetry.interval"},
		{"denial_log: {interval: 1ms}\n", "denial_log.interval"},
		{"denial_log: {max_lines: 0}\n", "between 1 and 1000"},
		{"denial_log: {max_lines: 1001}\n", "between 1 and 1000"},
	} {
		path := filepath.Join(t.TempDir(), "mete.yaml")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := load(path, nil)
		switch {
		case tt.mistake == "" && err != nil:
			t.Errorf("%s: %v", tt.text, err)
		case tt.mistake != "" && (err == nil || !strings.Contains(err.Error(), tt.mistake)):
			t.Errorf("%s: got %v, want %s", tt.text, err, tt.mistake)
		case err != nil && strings.Contains(err.Error(), "secret@"):
			t.Errorf("%s: the error shows a secret: %v", tt.text, err)
		}
	}
}

// Errors in the settings of the webhook are reported without its secrets.
func TestLoad_DenialWebhook(t *testing.T) {
	for _, test := range []struct{ key, value, want string }{
		{"url", "siem.example.com", "is not a URL"},
		{"url", "https://canary:canary@siem.example.com/d", "must have no user"},
		{"url", "http://siem.example.com/d?canary", "must be https://"},
		{"headers", "canary", "number 1 is not name=value"},
		{"batch", "0", "must be between 1 and 1000"},
		{"queue", "99", "must be between denial_webhook.batch and 100000"},
		{"interval", "1ms", "must be"},
	} {
		_, err := load("", []config.Setting{{Key: "denial_webhook." + test.key, Value: test.value}})
		if err == nil || !strings.Contains(err.Error(), "denial_webhook."+test.key+": "+test.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s=%s: %v, want %q", test.key, test.value, err, test.want)
		}
	}
	for _, url := range []string{"https://siem.example.com/d?token=x", "http://127.0.0.1:9/d", "http://[::1]/d"} {
		if _, err := load("", []config.Setting{{Key: "denial_webhook.url", Value: url}}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
