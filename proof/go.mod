module github.com/metehq/mete/proof

go 1.26.0

require github.com/metehq/mete v0.0.0

require (
	github.com/getkin/kin-openapi v0.152.0 // indirect
	golang.org/x/net v0.60.0 // indirect
)

replace github.com/metehq/mete => ../
