// SPDX-License-Identifier: Apache-2.0

package meted_test

import (
	"net/http"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

func TestStart(t *testing.T) {
	s := meted.Start(t, "log_level: debug\n")
	for _, url := range []string{s.URL, s.AdminURL} {
		answer, err := http.Get(url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", url, answer.Status)
		}
	}
	if err := s.Process.Stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
