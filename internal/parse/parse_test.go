// SPDX-License-Identifier: Apache-2.0

package parse_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/parse"
)

var cup = &parse.Table{
	What: "a cup", Example: `{"size": 3}`, Required: []string{"size"},
	Fields: []parse.Field{
		{Name: "size", Doc: "How much it holds.", Form: parse.Whole(1, 9)},
		{Name: "color", Doc: "Its color.", Form: parse.Word("red", "blue")},
		{Name: "cooled", Form: parse.Bool()},
		{Name: "for", Form: parse.Ref("duration")},
	},
	UnknownFields: map[string]parse.UnknownField{
		"volume": {Hint: "say size", Replaces: []string{"size"}},
		"lid":    {Reason: "field \"lid\" is not supported yet", Hint: "remove it"},
	},
}

// readCup reads a document by the table and returns its errors as lines.
func readCup(text string) string {
	var r parse.Report
	if root := r.Parse([]byte(text), 100_000); root != nil {
		if o := r.Object(root, cup); o != nil {
			if n := o.Require("size", "as in 3"); n != nil {
				r.Whole(n, "size", 1, 9)
			}
			if n := o.Field("color"); n != nil {
				r.Choice(n, "color", []string{"red", "blue"}, map[string]string{"green": ": it fades"})
			}
			if n := o.Field("cooled"); n != nil {
				r.Bool(n, "cooled")
			}
			if n := o.Field("for"); n != nil {
				r.Duration(n, "for", "20ms")
			}
		}
	}
	var lines []string
	for _, m := range r.Errors() {
		lines = append(lines, fmt.Sprintf("%s: %s (%s); %s", m.Path, m.Reason, m.Value, m.Hint))
	}
	return strings.Join(lines, "\n")
}

func TestObject(t *testing.T) {
	for text, want := range map[string]string{
		`{"size": 3, "color": "red", "cooled": true, "for": "20ms"}`: "",
		`[]`:                         `: a cup must be an object (a list of 0); as in {"size": 3}`,
		`{"size": 3`:                 `: not JSON: unexpected end of JSON input in line 1, column 10 (); `,
		`{}`:                         `: field "size" is missing (); as in 3`,
		`{"volume": 3}`:              `/volume: unknown field "volume" in a cup (); say size`,
		`{"sise": 3}`:                `/sise: unknown field "sise" in a cup (); did you mean "size"?`,
		`{"size": 3, "lid": 1}`:      `/lid: field "lid" is not supported yet (); remove it`,
		`{"size": 3, "x/y": 1}`:      `/x~1y: unknown field "x/y" in a cup (); valid fields are size, color, cooled, for`,
		`{"size": 3, "size": 4}`:     `/size: field "size" is given twice (); remove one of them`,
		`{"size": 3.5}`:              `/size: size must be a whole number from 1 to 9 (3.5); `,
		`{"size": 3, "color": 5}`:    `/color: color must be red or blue (5); `,
		`{"size":3,"color":"bleu"}`:  `/color: color must be red or blue ("bleu"); did you mean "blue"?`,
		`{"size":3,"color":"green"}`: `/color: color is not supported yet: it fades ("green"); use red`,
		`{"size": 3, "cooled": "x"}`: `/cooled: cooled must be true or false ("x"); `,
		`{"size": 3, "for": 20}`:     `/for: for must be a duration (20); add a unit, as in "20ms"`,
		`{"cooled": 1, "size": 0}`:   "/cooled: cooled must be true or false (1); \n/size: size must be a whole number from 1 to 9 (0); ", // in the order of the document
	} {
		if got := readCup(text); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestReport_IsBounded(t *testing.T) {
	if got := readCup(strings.Repeat("[", 1000) + strings.Repeat("]", 1000)); !strings.Contains(got, "nest deeper than 16") {
		t.Errorf("deep lists: %s", got)
	}
	if got := readCup(`{"size": "` + strings.Repeat("ä", 100) + `"}`); len(got) > 200 || !strings.Contains(got, "…") {
		t.Errorf("a long value: %s", got)
	}
	var fields []string
	for i := range 1010 {
		fields = append(fields, fmt.Sprintf(`"unknown%d": 1`, i))
	}
	got := readCup(`{"size": 1, ` + strings.Join(fields, ",") + `}`)
	if want := ": too many errors: 10 more are not shown (); "; strings.Count(got, "\n") != 1000 || !strings.HasSuffix(got, want) {
		t.Errorf("%d lines, the last %q, want 1001, the last %q", strings.Count(got, "\n")+1, got[strings.LastIndexByte(got, '\n')+1:], want)
	}
}

// A node in its JSON form is the same node, with numbers as they were written.
func TestNode_AppendJSON(t *testing.T) {
	const text = `{"a":[1.50,"<\"x",null,true],"b":{"c":-1e3}}`
	var r parse.Report
	if got := string(r.Parse([]byte(text), len(text)).AppendJSON(nil)); got != strings.ReplaceAll(text, "<", `\u003c`) {
		t.Errorf("got %s, want %s", got, text)
	}
	if r.Parse([]byte(text), len(text)-1) != nil || r.Count() != 1 {
		t.Errorf("a text that is too long: %v", r.Errors())
	}
}

func TestTable_Schema(t *testing.T) {
	var o struct {
		Properties map[string]struct{ Description string }
		Required   []string
		More       bool `json:"additionalProperties"`
	}
	o.More = true
	if err := json.Unmarshal(cup.Schema().JSON(), &o); err != nil {
		t.Fatal(err)
	}
	if o.More || !slices.Equal(o.Required, cup.Required) || len(o.Properties) != len(cup.Fields) || o.Properties["color"].Description != "Its color." {
		t.Errorf("the schema of a cup is %+v", o)
	}
}
