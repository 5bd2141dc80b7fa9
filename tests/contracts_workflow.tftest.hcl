mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

variables {
  name   = "charges"
  effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" } }
}

run "shortest_block" {
  module {
    source = "./modules/workflow"
  }
}
