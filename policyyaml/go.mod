module github.com/metehq/mete/policyyaml

go 1.26.0

require (
	github.com/metehq/mete v0.0.0
	go.yaml.in/yaml/v3 v3.0.6
)

replace github.com/metehq/mete => ../
