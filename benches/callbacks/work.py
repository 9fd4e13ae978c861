"""What is measured: code that does nothing but call, and code like that of servers' plugins."""
import json
import re


# Nothing but calls.
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Cell:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x

    def add(self, other):
        return Cell(self.get() + other.get())


def methods():
    a, b = Cell(1), Cell(2)
    for _ in range(5_000):
        a.add(b)


def count(n):
    for i in range(n):
        yield i


def generators():
    return sum(count(25_000))


# A scheduler of small tasks that send each other packets.
class Packet:
    def __init__(self, kind, data):
        self.kind = kind
        self.data = data
        self.link = None

    def append_to(self, queue):
        self.link = None
        if queue is None:
            return self
        last = queue
        while last.link is not None:
            last = last.link
        last.link = self
        return queue


class Task:
    def __init__(self, name, next_task):
        self.name = name
        self.queue = None
        self.held = False
        self.next_task = next_task
        self.handled = 0

    def is_runnable(self):
        return not self.held and self.queue is not None

    def take(self):
        packet = self.queue
        self.queue = packet.link
        return packet

    def handle(self, packet):
        raise NotImplementedError

    def run(self):
        packet = self.take()
        self.handled += 1
        return self.handle(packet)


class Worker(Task):
    def handle(self, packet):
        packet.data = [(value * 7 + 3) % 26 for value in packet.data]
        packet.kind = "device" if sum(packet.data) % 2 else "work"
        return self.next_task, packet


class Device(Task):
    def handle(self, packet):
        self.held = self.handled % 5 == 0
        packet.kind = "work"
        return self.next_task, packet


class Scheduler:
    def __init__(self):
        worker = Worker("worker", None)
        device = Device("device", worker)
        second = Worker("second", device)
        worker.next_task = second
        self.tasks = [worker, device, second]
        for task in self.tasks:
            for _ in range(3):
                self.queue(task, Packet("work", [1, 2, 3, 4]))

    def queue(self, task, packet):
        task.queue = packet.append_to(task.queue)

    def schedule(self, rounds):
        for _ in range(rounds):
            for task in self.tasks:
                if task.is_runnable():
                    to, packet = task.run()
                    self.queue(to, packet)
                else:
                    task.held = False


def scheduler():
    Scheduler().schedule(800)


# Values that depend on each other: a change is carried on through constraints, the strongest first.
class Variable:
    def __init__(self, name, value):
        self.name = name
        self.value = value
        self.constraints = []
        self.mark = 0

    def attach(self, constraint):
        self.constraints.append(constraint)


class Constraint:
    def __init__(self, strength, source, target):
        self.strength = strength
        self.source = source
        self.target = target
        source.attach(self)

    def stronger_than(self, other):
        return self.strength > other.strength

    def is_satisfied(self):
        return self.target.value == self.wanted()

    def wanted(self):
        return self.source.value

    def execute(self):
        self.target.value = self.wanted()


class Scale(Constraint):
    def __init__(self, strength, source, target, factor, offset):
        super().__init__(strength, source, target)
        self.factor = factor
        self.offset = offset

    def wanted(self):
        return (self.source.value * self.factor + self.offset) % 10_007


class Planner:
    def __init__(self):
        self.mark = 0

    def change(self, variable, value):
        self.mark += 1
        variable.value = value
        waiting = [variable]
        while waiting:
            variable = waiting.pop()
            if variable.mark == self.mark:
                continue
            variable.mark = self.mark
            for constraint in sorted(variable.constraints, key=lambda constraint: -constraint.strength):
                if not constraint.is_satisfied():
                    constraint.execute()
                    waiting.append(constraint.target)


def make_constraints():
    variables = [Variable("v%d" % n, n) for n in range(200)]
    for n in range(199):
        if n % 3:
            Constraint(n % 5, variables[n], variables[n + 1])
        else:
            Scale(n % 5, variables[n], variables[n + 1], 3, n)
    return variables


VARIABLES = make_constraints()
PLANNER = Planner()


def constraints():
    for n in range(20):
        PLANNER.change(VARIABLES[0], n * 31 + PLANNER.mark)


# A page from a template.
class Template:
    FIELD = re.compile(r"\{\{\s*([\w.|]+)\s*\}\}")

    def __init__(self, text):
        parts = self.FIELD.split(text)
        self.parts = [self.compile(part) if n % 2 else part for n, part in enumerate(parts)]

    def compile(self, field):
        name, *filters = field.split("|")
        path = name.split(".")
        return lambda context: self.filtered(self.look_up(context, path), filters)

    def look_up(self, context, path):
        for step in path:
            context = context[step] if isinstance(context, dict) else getattr(context, step)
        return context

    def filtered(self, value, filters):
        for name in filters:
            value = FILTERS[name](value)
        return str(value)

    def render(self, context):
        return "".join(part if isinstance(part, str) else part(context) for part in self.parts)


def escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


FILTERS = {"escape": escape, "upper": lambda text: str(text).upper(), "money": lambda n: "%.2f" % n}
ROW = Template("<tr><td>{{ player.name|escape }}</td><td>{{ price|money }}</td><td>{{ item|upper|escape }}</td></tr>")
PLAYERS = [{"player": {"name": "<Player %d>" % n}, "price": n * 1.5, "item": "stone & dirt"} for n in range(100)]


def templates():
    for _ in range(5):
        "\n".join(ROW.render(player) for player in PLAYERS)


# Words of a command language, one class and one method call each.
TOKEN = re.compile(r"(?P<number>\d+(\.\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<text>\"[^\"]*\")|(?P<op>[-+*/=(){}<>,;])|(?P<space>\s+)")
SOURCE = 'give(player_1, "diamond sword", 3) ; if (health < 10.5) { heal(player_1, amount * 2 + 1) } teleport(player_1, 10, 64, -20);\n' * 15


class Token:
    __slots__ = ("kind", "text", "line")

    def __init__(self, kind, text, line):
        self.kind = kind
        self.text = text
        self.line = line


class Lexer:
    def __init__(self, source):
        self.source = source
        self.line = 1

    def tokens(self):
        for match in TOKEN.finditer(self.source):
            token = getattr(self, "on_" + match.lastgroup)(match.group())
            if token is not None:
                yield token

    def on_space(self, text):
        self.line += text.count("\n")

    def on_number(self, text):
        return Token("number", float(text), self.line)

    def on_name(self, text):
        return Token("name", text, self.line)

    def on_text(self, text):
        return Token("text", text.strip('"'), self.line)

    def on_op(self, text):
        return Token("op", text, self.line)


def tokenizer():
    return sum(1 for _ in Lexer(SOURCE).tokens())


# Mobs on a grid that look for the nearest player, fight, and drop things.
class Mob:
    def __init__(self, n):
        self.position = [n * 7 % 64, 64, n * 13 % 64]
        self.health = 20
        self.attributes = {"speed": 0.2 + n % 3 * 0.1, "damage": 2 + n % 4, "range": 16}
        self.inventory = {}

    @property
    def is_alive(self):
        return self.health > 0

    def distance_to(self, other):
        a, b = self.position, other.position
        return ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2) ** 0.5

    def move_towards(self, other):
        speed = self.attributes["speed"]
        for axis in (0, 2):
            self.position[axis] += speed if other.position[axis] > self.position[axis] else -speed

    def attack(self, other):
        other.health -= self.attributes["damage"] * (1 - other.attributes.get("armor", 0.1))
        if not other.is_alive:
            self.collect(other.drops())
            other.health = 20

    def drops(self):
        return {"bone": 1, "arrow": self.health % 3 + 1}

    def collect(self, drops):
        for name, amount in drops.items():
            self.inventory[name] = self.inventory.get(name, 0) + amount


class World:
    def __init__(self):
        self.mobs = [Mob(n) for n in range(24)]

    def tick(self):
        for mob in self.mobs:
            near = [other for other in self.mobs if other is not mob and abs(other.position[0] - mob.position[0]) < 16]
            if near:
                target = min(near, key=mob.distance_to)
                if mob.distance_to(target) < 3:
                    mob.attack(target)
                else:
                    mob.move_towards(target)


def game():
    world = World()
    for _ in range(15):
        world.tick()


DOCUMENT = {"a": list(range(50)), "b": {"c": "x" * 100}, "d": [{"name": "n%d" % n, "at": [n, 2 * n]} for n in range(20)]}


def documents():
    for _ in range(60):
        json.loads(json.dumps(DOCUMENT))


# Functions of some microseconds each, as a plugin's mostly are.
def settle(offers):
    by_item = {}
    for item, price in offers:
        by_item.setdefault(item, []).append(price)
    return {item: sum(prices) / len(prices) for item, prices in by_item.items()}


OFFERS = [("item %d" % (n % 17), n * 37 % 101) for n in range(200)]


def settling():
    for _ in range(60):
        settle(OFFERS)


WORK = {
    "fib": lambda: fib(18),
    "methods": methods,
    "generators": generators,
    "scheduler": scheduler,
    "constraints": constraints,
    "templates": templates,
    "tokenizer": tokenizer,
    "game": game,
    "json": documents,
    "settling": settling,
}
