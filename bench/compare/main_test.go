// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject"
)

func TestRunPrintsTheSubjectsAskedFor(t *testing.T) {
	var out strings.Builder
	err := run([]string{"-rounds", "2", "-time", "1ms", "-only", "^(hot|deny)/(mete: keyed.Allow|throttled)$"}, &out, io.Discard)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	for _, want := range []string{"(`hot`)", "(`deny`)", "| mete: keyed.Allow ", "| throttled ", "### Targets", "| hot, serial "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &out)
		}
	}
	for _, other := range []string{"(`zipf`)", "ulule/limiter |", "answered wrongly"} {
		if strings.Contains(out.String(), other) {
			t.Errorf("the output has %q:\n%s", other, &out)
		}
	}
}

func TestRunPrintsJSON(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-rounds", "1", "-time", "1ms", "-only", "^hot/mete: keyed.Allow$", "-json"}, &out, io.Discard); err != nil {
		t.Fatalf("run: %v", err)
	}
	var got struct{ Results []result }
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatalf("output %q: %v", &out, err)
	}
	if r := find(got.Results, "hot", subject.Mete); r == nil || r.Serial == nil || r.Serial.Median <= 0 || r.Bytes != nil {
		t.Errorf("the output lacks a serial time of hot/mete, or has a size: %s", &out)
	}
}

func TestRunRefusesBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "0"}, {"-time", "0s"}, {"-time", "1h"}, {"-only", "("}, {"-only", "nothing/at/all"}, {"hot"}, {"-unknown"},
	} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("run(%q) succeeded, want an error", args)
		}
	}
}

func TestJudge(t *testing.T) {
	at := func(subject string, ns float64) result {
		s := report.NewStat([]float64{ns})
		return result{Scenario: "hot", Subject: subject, Serial: s, Parallel: s, Allocs: report.NewStat([]float64{0})}
	}
	for _, c := range []struct {
		mete float64
		met  bool
	}{{10, true}, {11, false}} {
		verdicts := judge([]result{at(subject.Mete, c.mete), at(subject.Throttled, 20), at(subject.Sethvargo, 17), at("ulule/limiter", 1)})
		if len(verdicts) != 3 { // serial, parallel, allocations
			t.Fatalf("judge gave %d verdicts, want 3: %+v", len(verdicts), verdicts)
		}
		v := verdicts[0]
		if v.Rival != subject.Sethvargo || v.Met != c.met || !verdicts[2].Met {
			t.Errorf("with mete at %v ns against 17: %+v, want met = %v against %s", c.mete, verdicts, c.met, subject.Sethvargo)
		}
	}
}
