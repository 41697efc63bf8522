module github.com/metehq/mete/cmd

go 1.26.0

require (
	github.com/metehq/mete v0.0.0
	github.com/rogpeppe/go-internal v1.16.0
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/term v0.47.0
)

require (
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/tools v0.26.0 // indirect
)

replace github.com/metehq/mete => ../
