// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

func TestParseState(t *testing.T) {
	for text, want := range map[string]bucket.State{
		"1500@1700000000000000":  {Spent: 1500, Unit: 10, AsOf: 1700000000000000},
		"7@-5":                   {Spent: 7, Unit: 10, AsOf: -5},
		"300+200@1700000040000":  {Spent: 500, Prev: 200, Unit: 10, AsOf: 1700000040000},
		"0+200@1700000040000000": {Spent: 200, Prev: 200, Unit: 10, AsOf: 1700000040000000},
	} {
		if got, err := parseState(text, 10); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "1", "1@", "@1", "x@3", "1+2", "1+2@", "1+@3", "1/2@3", "1e3@1", "99999999999999999999@1"} {
		if got, err := parseState(text, 10); err == nil {
			t.Errorf("%q is %+v, want an error", text, got)
		}
	}
}

// packRow returns a row of version 2.
func packRow(limit string, spent, asOf float64) string {
	row := append([]byte(packedVersion), limit+" "...)
	row = binary.LittleEndian.AppendUint64(row, math.Float64bits(spent))
	return string(binary.LittleEndian.AppendUint64(row, math.Float64bits(asOf)))
}

func TestCutPacked(t *testing.T) {
	const most = 1<<53 - 1
	for want, row := range map[bucket.State]string{
		{Spent: 1500, Unit: 1, AsOf: 1700000000000000}: packRow("20000+1/10", 1500, 1700000000000000),
		{Spent: most, Unit: 1, AsOf: -most}:            packRow("20000+1/10d5", most, -most),
		{Unit: 1}:                                      packRow("1+1/1", 0, 0),
	} {
		if got, rest, err := cutPacked(row + " more"); err != nil || got != want || rest != " more" {
			t.Errorf("%q is %+v, %q, %v; want %+v", row, got, rest, err, want)
		}
	}
	good := packRow("1+1/1", 1, 1)
	for _, row := range []string{
		"", "2:", "2:1+1/1", "2:1+1/1 ", good[:len(good)-1], "1" + good[1:], "1:5@17 1+1/1 and much behind it",
		packRow("1+1/1", -1, 1), packRow("1+1/1", 0.5, 1), packRow("1+1/1", 1, 1.5), packRow("1+1/1", most+1, 1),
		packRow("1+1/1", math.NaN(), 1), packRow("1+1/1", 1, math.NaN()), packRow("1+1/1", math.Inf(1), 1), packRow("1+1/1", 1, math.Inf(-1)),
	} {
		if got, rest, err := cutPacked(row); err == nil {
			t.Errorf("%q is %+v and %q, want an error", row, got, rest)
		}
	}
}

// FuzzAnswer proves that each ask of a program gets an answer or an error, for any answer of the script.
func FuzzAnswer(f *testing.F) {
	f.Add("1700000000000000 - - 1 1", true)
	f.Add("1700000000000000 "+packRow("10000+1/1000", 5, 17)+" "+packRow("10000+1/1000", 0, 17)+" 1 2 0", true)
	f.Add("1700000000000000 1:5@17 10000+1/1000000 1:0@17 10000+1/1000000 1 0", true)
	f.Add("1700000000000000 1 5@17 1 1700000000000000 :5@17 1000:0@5:1,2,3,4,5", false)
	f.Add("", true)
	f.Add("17 L1,2,3 :L1,2,-1 0 0", false)
	f.Fuzz(func(t *testing.T, text string, plain bool) {
		l, err := bucket.NewLimit(10*bucket.Token, bucket.PerSecond(1))
		if err != nil {
			t.Fatal(err)
		}
		log, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.PerSecond(10)}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		a, b := store.Charge{Key: "a", Limit: l, Cost: 1000}, store.Charge{Key: "b", Limit: l, Cost: 500}
		asks := []*ask{newAsk(opTake, []store.Charge{a}, mete.Mode{}), newAsk(opTake, []store.Charge{a, b}, mete.Mode{})}
		if !plain {
			c := store.Charge{Key: "c", Limit: log, Cost: 1}
			asks = append(asks, newAsk(opTake, []store.Charge{a, c}, mete.Mode{UpTo: true}), newAsk(opBorrow, []store.Charge{b}, mete.Mode{}))
			asks[3].leases = []string{"lease"}
		}
		var p program
		p.reset("", -1)
		for _, a := range asks {
			if !p.add(a) {
				t.Fatal("does not go into the program")
			}
		}
		p.encode()
		p.readAnswers(text)
		for i, a := range asks {
			if a.Err == nil && a.op == opTake && len(a.snaps) != len(a.charges) {
				t.Errorf("ask %d has neither an error nor its snapshots", i)
			}
		}
	})
}
