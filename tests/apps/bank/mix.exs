defmodule Bank.MixProject do
  use Mix.Project

  def project do
    [app: :bank, version: "1.0.0", releases: [bank: [strip_beams: true]]]
  end

  def application do
    [mod: {Bank.Application, []}, extra_applications: [:logger, :mnesia]]
  end
end
