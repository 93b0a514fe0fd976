# A bank for the tests. Accounts are processes of a DynamicSupervisor and registered in a Registry. Transfers are tasks.
# An Agent counts them, an ETS table caches balances, and Mnesia keeps the ledger.
#
# Clients send lines over a loopback socket. A client knows the number of its requests, so a test can compare it with
# the events of etrace. Nothing here knows etrace.
defmodule Bank.Application do
  use Application

  def start(_type, _args) do
    :ok = Bank.Ledger.create()
    :ets.new(:bank_cache, [:named_table, :public, write_concurrency: true])

    Supervisor.start_link(
      [
        {Registry, keys: :unique, name: Bank.Accounts},
        {Bank.Figures, []},
        {DynamicSupervisor, name: Bank.AccountSupervisor},
        {Task.Supervisor, name: Bank.TransferSupervisor},
        {Bank.Listener, System.fetch_env!("APP_PORT_FILE")}
      ],
      strategy: :rest_for_one,
      name: Bank.Supervisor
    )
  end
end

defmodule Bank.Account do
  use GenServer, restart: :transient

  defstruct [:id, :owner, balance: 0, password: "hunter2"]

  def start_link(id), do: GenServer.start_link(__MODULE__, id, name: via(id))
  def withdraw(id, amount), do: GenServer.call(via(id), {:withdraw, amount})
  def deposit(id, amount), do: GenServer.call(via(id), {:deposit, amount})
  def balance(id), do: GenServer.call(via(id), :balance)
  def close(id), do: GenServer.stop(via(id))

  defp via(id), do: {:via, Registry, {Bank.Accounts, id}}

  @impl true
  def init(id), do: {:ok, %Bank.Account{id: id, owner: "owner #{id}", balance: 1_000_000}}

  @impl true
  def handle_call({:withdraw, amount}, _from, %{balance: balance} = account) when amount > balance do
    {:reply, {:error, :insufficient}, account}
  end

  def handle_call({:withdraw, amount}, _from, account), do: change(account, -amount)
  def handle_call({:deposit, amount}, _from, account), do: change(account, amount)
  def handle_call(:balance, _from, account), do: {:reply, account.balance, account}

  defp change(account, amount) do
    account = %{account | balance: account.balance + amount}
    :ets.insert(:bank_cache, {account.id, account.balance})
    {:reply, {:ok, account.balance}, account}
  end
end

defmodule Bank.Ledger do
  def create do
    :mnesia.start()
    {:atomic, :ok} = :mnesia.create_table(:ledger, attributes: [:key, :from, :to, :amount])
    :ok
  end

  def record(number, from, to, amount) do
    {:atomic, :ok} = :mnesia.transaction(fn -> :mnesia.write({:ledger, number, from, to, amount}) end)
    :ok
  end

  def size, do: :mnesia.table_info(:ledger, :size)
end

defmodule Bank.Figures do
  use Agent

  def start_link(_), do: Agent.start_link(fn -> %{} end, name: __MODULE__)
  def add(what), do: Agent.update(__MODULE__, fn figures -> Map.update(figures, what, 1, &(&1 + 1)) end)
  def all, do: Agent.get(__MODULE__, & &1)
end

defmodule Bank.Transfer do
  defmodule Frozen do
    defexception message: "the account is frozen"
  end

  # Every fiftieth transfer exceeds any balance, every hundredth is slow, and every 125th raises and is rescued here.
  def run(number, accounts) do
    from = rem(number, accounts)
    to = rem(number * 7 + 1, accounts)

    result =
      try do
        move(number, from, to, amount(number))
      rescue
        Frozen -> {:error, :frozen}
      end

    Bank.Figures.add(elem(result, 0))
    result
  end

  def move(number, _from, _to, _amount) when rem(number, 125) == 1, do: raise(Frozen)

  def move(number, from, to, amount) do
    with {:ok, _} <- Bank.Account.withdraw(from, amount),
         :ok <- authorize(number),
         {:ok, _} <- Bank.Account.deposit(to, amount) do
      {Bank.Ledger.record(number, from, to, amount), number}
    end
  end

  def authorize(number) when rem(number, 100) == 2, do: Process.sleep(20)
  def authorize(_number), do: :ok

  defp amount(number) when rem(number, 50) == 0, do: 1_000_000_000
  defp amount(_number), do: 1
end

# Clients send these lines and get one line for each. "open N" opens the accounts 0 to N - 1; "transfer FIRST LAST
# ACCOUNTS" makes the transfers with these numbers; "close N" closes account N; "balances N" returns the sum of the
# accounts 0 to N - 1; "figures" and "ledger" return the number of transfers.
defmodule Bank.Listener do
  use Task, restart: :permanent

  def start_link(file), do: Task.start_link(__MODULE__, :listen, [file])

  def listen(file) do
    {:ok, socket} = :gen_tcp.listen(0, [:binary, packet: :line, active: false, ip: {127, 0, 0, 1}])
    {:ok, port} = :inet.port(socket)
    File.write!(file <> ".new", "#{port}\n")
    File.rename!(file <> ".new", file)
    accept(socket)
  end

  defp accept(socket) do
    {:ok, client} = :gen_tcp.accept(socket)
    {:ok, pid} = Task.Supervisor.start_child(Bank.TransferSupervisor, __MODULE__, :serve, [client])
    _ = :gen_tcp.controlling_process(client, pid)
    accept(socket)
  end

  def serve(client) do
    with {:ok, line} <- :gen_tcp.recv(client, 0),
         :ok <- :gen_tcp.send(client, [line |> String.split() |> answer(), "\n"]) do
      serve(client)
    else
      {:error, :closed} -> :ok
    end
  end

  def answer(["open", n]) do
    for id <- ids(n), do: {:ok, _} = DynamicSupervisor.start_child(Bank.AccountSupervisor, {Bank.Account, id})
    "ok"
  end

  def answer(["transfer", first, last, accounts]) do
    accounts = String.to_integer(accounts)

    Bank.TransferSupervisor
    |> Task.Supervisor.async_stream(String.to_integer(first)..String.to_integer(last), Bank.Transfer, :run, [accounts],
      max_concurrency: 16,
      timeout: 60_000
    )
    |> Enum.frequencies_by(fn {:ok, {what, _}} -> what end)
    |> then(&"#{Map.get(&1, :ok, 0)} #{Map.get(&1, :error, 0)}")
  end

  def answer(["close", id]), do: "#{Bank.Account.close(String.to_integer(id))}"
  def answer(["balances", n]), do: "#{n |> ids() |> Enum.map(&Bank.Account.balance/1) |> Enum.sum()}"
  def answer(["figures"]), do: "#{Map.get(Bank.Figures.all(), :ok, 0)} #{Map.get(Bank.Figures.all(), :error, 0)}"
  def answer(["ledger"]), do: "#{Bank.Ledger.size()}"

  defp ids(n), do: 0..(String.to_integer(n) - 1)//1
end
