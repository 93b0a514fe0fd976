# SPDX-License-Identifier: Apache-2.0
# Processes of an application in Elixir that exit in known ways, for `etrace died`: GenServers with a local name and
# with one in a Registry, tasks, and processes that are linked.
defmodule Shop.OutOfStock do
  defexception [:item, message: "nothing left"]
end

defmodule Shop.Stock do
  use GenServer

  def start_link(name), do: GenServer.start_link(__MODULE__, nil, name: name)
  def init(nil), do: {:ok, nil}

  def handle_call(:raise, _from, _), do: raise(Shop.OutOfStock, item: "thé")
  def handle_call(:match, _from, _), do: :ok = unmatched()
  def handle_call(:stop, _from, state), do: {:stop, {self(), fn x -> x end, &String.upcase/1}, state}
  def handle_call(:gone, _from, state), do: {:stop, :gone, state}

  defp unmatched, do: {:error, [item: nil, stock: ~c"empty"]}
end

defmodule Shop do
  def start do
    {:ok, pid} =
      Supervisor.start_link(
        [
          {Registry, keys: :unique, name: Shop.Names},
          %{id: :stock, start: {Shop.Stock, :start_link, [Shop.Stock]}},
          {Task.Supervisor, name: Shop.Tasks}
        ],
        strategy: :one_for_one,
        max_restarts: 1000,
        name: Shop.Supervisor
      )

    Process.unlink(pid)
    :ok
  end

  def stop, do: Supervisor.stop(Shop.Supervisor)

  # Starts a server with a name in the registry. The supervisor starts it again.
  def open(name) do
    server = {:via, Registry, {Shop.Names, name}}
    child = %{id: name, start: {Shop.Stock, :start_link, [server]}}
    {:ok, _} = Supervisor.start_child(Shop.Supervisor, child)
    server
  end

  # Makes a server exit, and returns when the supervisor has started it again.
  def ends(server, how) do
    old = GenServer.whereis(server)
    caller = spawn(fn -> GenServer.call(server, how) end)
    await(fn -> GenServer.whereis(server) not in [nil, old] and not Process.alive?(caller) end)
  end

  def task_exits(reason), do: over(Task.Supervisor.start_child(Shop.Tasks, fn -> exit(reason) end))

  # A process exits, and one that is linked to it.
  def linked(reason) do
    me = self()
    first = spawn(fn -> leaves(me, reason) end)
    receive do: (:up -> :ok)
    second = spawn(fn -> Process.link(first) && send(me, :up) && Process.sleep(:infinity) end)
    receive do: (:up -> :ok)
    send(first, :leave)
    over({:ok, second})
  end

  defp leaves(starter, reason) do
    Process.register(self(), Shop.First)
    send(starter, :up)
    receive do: (:leave -> exit(reason))
  end

  defp over({:ok, pid}), do: await(fn -> not Process.alive?(pid) end)

  defp await(effect), do: effect.() || (Process.sleep(1) && await(effect))
end
