# Compares Elixir's own heads and guards with etrace's. Elixir compiles random clauses into functions, etrace compiles
# them into match specifications, and both run on the same random arguments. Prints TAP.
#     elixir -pa DIR_OF_ms_oracle elixir_oracle.exs LANG_TOOL SEED [FILE FOR live_oracle.erl]
defmodule Oracle do
  # Writes the cases for live_oracle.erl: {:elixir, {patterns, guard, value}, arity, [{arguments, Elixir's result}]}
  def main([tool, seed, file]) do
    :rand.seed(:exsss, String.to_integer(seed))
    Code.compiler_options(ignore_module_conflict: true, infer_signatures: false)
    port = Port.open({:spawn_executable, tool}, [:binary, {:line, 1_000_000}, args: ["--lines", "--otp=" <> otp()]])
    cases = for i <- 1..String.to_integer(System.get_env("CASES", "200")), do: {i, clause()}
    cases = for {_, clause} = c <- cases, match?({:ok, _}, ask(port, text(clause))), compiles?(c), do: c

    live =
      for {i, {pats, guard, vars}} <- cases do
        calls = for a <- args(pats), do: {a, with({:match, v} <- elixir(i, a), do: {:match, :msg, v})}
        {:elixir, {pats, guard, value(vars)}, length(pats), calls}
      end

    File.write!(file, :erlang.term_to_binary(live))
  end

  def main([tool, seed]) do
    :rand.seed(:exsss, String.to_integer(seed))
    Code.compiler_options(ignore_module_conflict: true, infer_signatures: false)
    count = String.to_integer(System.get_env("CASES", "1500"))
    cases = for i <- 1..count, do: {i, clause()}
    port = Port.open({:spawn_executable, tool}, [:binary, {:line, 1_000_000}, args: ["--lines", "--otp=" <> otp()]])
    specs = Map.new(cases, fn {i, c} -> {i, ask(port, text(c))} end)
    cases = Enum.filter(cases, &compiles?/1)
    results = for {i, c} <- cases, do: judge(i, c, specs[i])
    bad = for {:differs, d} <- results, do: d
    matched = Enum.sum(for {:same, n} <- results, do: n)
    refused = Enum.count(results, &(&1 == :never))
    ok = if bad == [] and matched > div(count * 2, 3), do: "ok", else: "not ok"
    IO.puts("#{ok} 1 - #{length(cases)} clauses of Elixir mean what Elixir #{System.version()} makes of them (OTP #{otp()})")
    IO.puts("# #{matched} argument lists matched; #{refused} clauses were refused because they always fail")
    for d <- Enum.take(bad, 5), do: IO.puts("# " <> inspect(d, limit: :infinity, width: :infinity))
    IO.puts("1..1")
  end

  defp otp, do: to_string(:erlang.system_info(:otp_release))

  # ---- the two sides ----

  defp text({pats, guard, vars}), do: "M.c(#{Enum.join(pats, ", ")})#{guard} -> msg(#{value(vars)})"

  defp value(vars), do: "{#{Enum.join(vars ++ [":seen"], ", ")}}"

  # Skip clauses that Elixir itself rejects (for example a guard of constants that is always false).
  defp compiles?({i, {pats, guard, vars}}) do
    Code.compile_string("""
    defmodule M#{i} do
      import Bitwise, warn: false
      require Integer
      def c([#{Enum.join(pats, ", ")}])#{guard}, do: {:match, #{value(vars)}}
      def c(_), do: :no_match
    end
    """)

    true
  rescue
    CompileError -> false
  end

  defp ask(port, text) do
    Port.command(port, text <> "\n")
    answer(port, [])
  end

  defp answer(port, lines) do
    receive do
      {^port, {:data, {:eol, ""}}} -> parse(Enum.reverse(lines))
      {^port, {:data, {:eol, line}}} -> answer(port, [line | lines])
    after
      20_000 -> exit(:no_answer)
    end
  end

  defp parse(["error " <> text]), do: {:error, text}

  defp parse(["ok " <> line | _]) do
    {:ok, tokens, _} = :erl_scan.string(String.to_charlist(line))
    {:ok, [expr]} = :erl_parse.parse_exprs(tokens)
    {:value, {:call, _, spec, _}, _} = :erl_eval.expr(expr, [])
    {:ok, spec}
  end

  defp judge(i, {pats, guard, _} = c, {:error, error}) do
    right = ["takes", "always fails", "a guard must be a test", "counted from 1"]
    dead = guard =~ " and " or guard =~ " or "

    cond do
      not Enum.any?(right, &String.contains?(error, &1)) -> {:differs, {text(c), error}}
      dead -> :never
      Enum.any?(args(pats), &(elixir(i, &1) != :no_match)) -> {:differs, {text(c), error}}
      true -> :never
    end
  end

  defp judge(i, {pats, _, _} = c, {:ok, spec}) do
    Enum.reduce_while(args(pats), {:same, 0}, fn args, {:same, n} ->
      theirs = elixir(i, args)
      mine = mine(:ms_oracle.run(spec, args))

      cond do
        mine != theirs -> {:halt, {:differs, {text(c), args, etrace: mine, elixir: theirs}}}
        mine == :no_match -> {:cont, {:same, n}}
        true -> {:cont, {:same, n + 1}}
      end
    end)
  end

  defp elixir(i, args), do: apply(Module.concat(["M#{i}"]), :c, [args])

  defp mine({:match, [message: {v}]}), do: {:match, v}
  defp mine(other), do: other

  # ---- clauses ----

  defp clause do
    n = :rand.uniform(2)
    {pats, vars} = Enum.map_reduce(1..n, [], fn _, vars -> pattern(2, vars) end)
    vars = Enum.uniq(vars)

    guard =
      case :rand.uniform(7) do
        1 -> ""
        2 -> " when #{test(1, vars)} when #{test(1, vars)}"
        _ -> " when #{test(2, vars)}"
      end

    {pats, guard, vars}
  end

  defp pick(list), do: Enum.random(list)

  defp var, do: pick(~w(a b c))

  defp pattern(0, vars) do
    case :rand.uniform(10) do
      1 -> {"_", vars}
      n when n < 6 -> (v = var(); {v, [v | vars]})
      _ -> {literal(), vars}
    end
  end

  defp pattern(d, vars) do
    case :rand.uniform(16) do
      1 -> wrap("{", "}", d, vars)
      2 -> wrap("[", "]", d, vars)
      3 -> (({h, vars} = pattern(d - 1, vars)); {t, vars} = pattern(0, vars); {"[#{h} | #{t}]", vars})
      4 -> ({p, vars} = pattern(d - 1, vars); {"%{k: #{p}}", vars})
      5 -> ({p, vars} = pattern(d - 1, vars); {"%{\"s\" => #{p}, 1 => _}", vars})
      6 -> ({p, vars} = pattern(0, vars); {"[a: #{p}]", vars})
      7 -> {"\"GET \" <> r", ["r" | vars]}
      8 -> {"\"a\" <> _", vars}
      9 -> {"<<x::binary-size(2), \"b\", _::binary>>", ["x" | vars]}
      10 -> ({p, vars} = pattern(d - 1, vars); {"%{__struct__: Foo, id: #{p}}", vars})
      11 -> ({p, vars} = pattern(d - 1, vars); {"(#{p}) = w", ["w" | vars]})
      12 -> {"%{} = m", ["m" | vars]}
      _ -> pattern(0, vars)
    end
  end

  defp wrap(open, close, d, vars) do
    {ps, vars} = Enum.map_reduce(1..:rand.uniform(2), vars, fn _, vars -> pattern(d - 1, vars) end)
    {open <> Enum.join(ps, ", ") <> close, vars}
  end

  defp literal,
    do: pick(["1", "2", "1.0", ":a", ":b", "nil", "true", "false", "\"ab\"", "~c\"ab\"", "[]", "{}", "Foo", "?a", "0x10", "1_0", ":\"odd atom\""])

  defp bound([], other), do: other
  defp bound(vars, other), do: if(:rand.uniform(6) == 1, do: other, else: pick(vars))

  defp test(0, vars) do
    x = bound(vars, literal())

    case :rand.uniform(12) do
      1 -> "is_nil(#{x})"
      2 -> "#{x} in [1, :a, \"ab\"]"
      3 -> "#{x} in 1..5"
      4 -> "#{x} not in [nil, 2]"
      5 -> "#{pick(~w(is_atom is_binary is_list is_map is_tuple is_integer is_float is_number is_boolean is_bitstring is_function is_pid))}(#{x})"
      6 -> pick(["is_struct(#{x})", "is_struct(#{x}, Foo)", "is_exception(#{x})", "is_non_struct_map(#{x})"])
      7 -> "is_map_key(#{bound(vars, "%{k: 1}")}, :k)"
      8 -> pick(["Integer.is_odd(#{x})", "Integer.is_even(#{x})"])
      _ -> "#{number(0, vars)} #{pick(~w(< > <= >= == != === !==))} #{number(0, vars)}"
    end
  end

  defp test(d, vars) do
    case :rand.uniform(7) do
      1 -> "not (#{test(d - 1, vars)})"
      2 -> "(#{test(d - 1, vars)}) and (#{test(d - 1, vars)})"
      3 -> "(#{test(d - 1, vars)}) or (#{test(d - 1, vars)})"
      4 -> "#{any(d - 1, vars)} #{pick(~w(== != === !==))} #{any(d - 1, vars)}"
      5 -> "#{number(d - 1, vars)} #{pick(~w(< > <= >=))} #{number(d - 1, vars)}"
      _ -> test(0, vars)
    end
  end

  defp number(0, vars), do: bound(vars, pick(~w(1 2 3 10)))

  defp number(d, vars) do
    case :rand.uniform(8) do
      1 -> "(#{number(d - 1, vars)} #{pick(~w(+ - *))} #{number(d - 1, vars)})"
      2 -> "#{pick(~w(div rem))}(#{number(d - 1, vars)}, 2)"
      3 -> "#{pick(~w(length map_size tuple_size byte_size abs round trunc ceil floor))}(#{bound(vars, "[]")})"
      4 -> "(#{number(d - 1, vars)} #{pick(["&&&", "|||", "<<<", ">>>"])} 1)"
      _ -> number(0, vars)
    end
  end

  defp any(0, vars), do: bound(vars, literal())

  defp any(d, vars) do
    case :rand.uniform(8) do
      1 -> "elem(#{bound(vars, "{1, 2}")}, #{pick(["0", "1"])})"
      2 -> "hd(#{bound(vars, "[1]")})"
      3 -> "{#{any(d - 1, vars)}, :a}"
      4 -> "[#{any(d - 1, vars)}]"
      5 -> "%{k: #{any(d - 1, vars)}}"
      6 -> if(vars == [], do: "1", else: "#{pick(vars)}.k")
      _ -> any(0, vars)
    end
  end

  # ---- arguments ----

  # Arguments that often match the patterns: terms of the pools, and terms of the patterns' shapes.
  defp args(pats), do: for(_ <- 1..14, do: Enum.map(pats, &like/1))

  defp like(pat) do
    cond do
      :rand.uniform(4) == 1 -> random(2)
      pat =~ "GET " -> "GET " <> pick(["", "x", "ab"])
      pat =~ "\"a\" <>" -> pick(["a", "ab", "b"])
      pat =~ "binary-size" -> pick(["xyb", "xybz", "xy"])
      pat =~ "__struct__" -> Map.merge(%{__struct__: pick([Foo, Bar]), id: random(0)}, pick([%{}, %{__exception__: true}]))
      pat =~ "%{k" -> %{k: random(1)}
      pat =~ "\"s\"" -> %{"s" => random(1), 1 => 2}
      String.starts_with?(pat, "{") -> pick([{random(0)}, {random(0), random(1)}])
      pat =~ "[a:" -> [a: random(0)]
      String.starts_with?(pat, "[") -> pick([[random(0)], [random(0), random(1)], [random(0) | random(0)]])
      String.starts_with?(pat, "(") -> random(2)
      String.starts_with?(pat, "%{}") -> %{a: 1}
      true -> Code.eval_string(literal()) |> elem(0)
    end
  end

  defp random(0), do: pick([1, 2, 3, 10, 0, -1, 1.0, 2.5, :a, :b, nil, true, false, "ab", "a", ~c"ab", [], {}, Foo, self(), <<1::3>>])

  defp random(d) do
    case :rand.uniform(7) do
      1 -> {random(d - 1), random(d - 1)}
      2 -> [random(d - 1)]
      3 -> %{k: random(d - 1)}
      4 -> %{__struct__: Foo, id: random(d - 1)}
      5 -> %{__struct__: Foo, __exception__: true, id: 1}
      _ -> random(0)
    end
  end
end

Oracle.main(System.argv())
