"""Different questions about the same topics, with their answers: the data behind the default calibrations."""

from __future__ import annotations

TOPICS: dict[str, tuple[tuple[str, str], ...]] = {
    "lighthouse": (
        ("When was the lighthouse at Cape Ardent built?", "The lighthouse at Cape Ardent was built in 1874."),
        ("How tall is the lighthouse at Cape Ardent?", "The lighthouse at Cape Ardent is 41 meters tall."),
        ("Who designed the lighthouse at Cape Ardent?", "Helen Marsh designed the lighthouse at Cape Ardent."),
    ),
    "bridge": (
        ("How long is the Golden Gate Bridge?", "The Golden Gate Bridge is about 2.7 kilometers long."),
        ("When did the Golden Gate Bridge open?", "The Golden Gate Bridge opened in May 1937."),
        ("What color is the Golden Gate Bridge?", "The Golden Gate Bridge is painted international orange."),
    ),
    "bakery": (
        ("When does the bakery open on Sundays?", "On Sundays the bakery opens at eight."),
        ("Does the bakery sell bread without gluten?", "Yes, the bakery sells two loaves without gluten."),
        ("Where can I park near the bakery?", "There is a car park behind the bakery, on Mill Lane."),
    ),
    "password": (
        (
            "How do I reset my password?",
            "Open the login page, choose Forgot password, and follow the link.",
        ),
        ("How long must a password be?", "A password must have at least twelve characters."),
        ("Why does my password expire?", "Passwords expire after a year because the security policy requires it."),
    ),
    "vacation": (
        ("How many days of vacation do employees get?", "Full-time employees get 28 days of vacation a year."),
        ("Who approves a vacation request?", "Your team lead approves vacation requests in the staff portal."),
        ("Can I carry vacation days over to next year?", "Up to five vacation days carry over until the end of March."),
    ),
    "invoice": (
        ("Where can I download my invoice?", "Invoices are under Account, then Billing, as PDF files."),
        ("When is an invoice due?", "An invoice is due fourteen days after its date."),
        (
            "How do I change the address on an invoice?",
            "Change the billing address under Account.",
        ),
    ),
    "python": (
        ("Who created the programming language Python?", "Guido van Rossum created Python."),
        ("Why is the programming language Python slow?", "Python is slow because it interprets bytecode dynamically."),
        ("How do I install the programming language Python?", "Download the installer from the website and run it."),
    ),
    "insulin": (
        ("What is insulin made of?", "Insulin is a protein of 51 amino acids in two chains."),
        ("Where in the body is insulin produced?", "Beta cells of the pancreas produce insulin."),
        ("How should insulin be stored?", "Keep unopened insulin in a refrigerator, but never freeze it."),
    ),
    "volcano": (
        ("When did Mount Vesuvius last erupt?", "Mount Vesuvius last erupted in March 1944."),
        ("How high is Mount Vesuvius?", "Mount Vesuvius rises 1,281 meters above the sea."),
        ("Can tourists walk to the top of Mount Vesuvius?", "Yes, a footpath leads tourists to the rim of the crater."),
    ),
    "tea": (
        ("How long should green tea steep?", "Green tea should steep for two to three minutes."),
        ("Does green tea contain caffeine?", "Yes, a cup of green tea contains about 30 milligrams of caffeine."),
        ("Which country grows the most green tea?", "China grows most of the world's green tea."),
    ),
    "router": (
        ("How do I restart the router?", "Hold the button on the back for five seconds to restart the router."),
        ("What do the lights on the router mean?", "A green light means connected, and a red light means no signal."),
        ("Which frequency does the router use?", "The router uses 2.4 and 5 gigahertz."),
    ),
    "whale": (
        ("What do blue whales eat?", "Blue whales eat krill, up to four tons of it a day."),
        ("How long do blue whales live?", "Blue whales live for about 80 to 90 years."),
        ("Why were blue whales hunted?", "Blue whales were hunted for the oil in their blubber."),
    ),
    "passport": (
        ("How much does a new passport cost?", "A new passport costs 70 euros for adults."),
        ("How long does it take to get a new passport?", "A new passport takes about three weeks."),
        (
            "Which documents do I need for a new passport?",
            "Bring your old passport and a photo.",
        ),
    ),
    "chess": (
        ("How does the knight move in chess?", "The knight moves two squares in one direction and one to the side."),
        ("Who was the first world champion in chess?", "Wilhelm Steinitz became the first champion in 1886."),
        ("When is a game of chess a draw?", "A game is drawn by stalemate, agreement or threefold repetition."),
    ),
    "solar": (
        ("How much power does a solar panel produce?", "A common solar panel produces about 400 watts at noon."),
        ("How is a solar panel cleaned?", "Rinse a solar panel with water and wipe it with a soft brush."),
        ("What happens to solar panels after their life?", "Old solar panels are recycled for glass and silicon."),
    ),
    "library": (
        ("How long may I borrow a book from the city library?", "You may borrow a book for four weeks."),
        ("What is the late fee of the city library?", "The late fee is 20 cents a day."),
        ("Does the city library lend electronic books?", "Yes, cardholders can read electronic books in the app."),
    ),
    "marathon": (
        ("Who won the Berlin marathon in 2019?", "Kenenisa Bekele won the Berlin marathon in 2019."),
        ("How do I register for the Berlin marathon?", "Enter the lottery on the website of the race in October."),
        ("Where does the Berlin marathon start?", "The race starts near the Brandenburg Gate."),
    ),
    "kubernetes": (
        ("What is a Kubernetes pod?", "A pod is the smallest unit of Kubernetes: one or more containers."),
        ("How do I delete a Kubernetes pod?", "Run kubectl delete pod with the name of the pod."),
        ("Why does a Kubernetes pod stay pending?", "A pod stays pending if no node has enough free memory or CPU."),
    ),
    "opera": (
        ("Who composed the opera Carmen?", "Georges Bizet composed Carmen."),
        ("Where does the opera Carmen take place?", "The opera takes place in Seville around 1820."),
        ("How long is the opera Carmen?", "A performance takes about two hours and forty minutes."),
    ),
    "bicycle": (
        ("How often should I oil the chain of my bicycle?", "Oil the chain every 200 kilometers and after rain."),
        ("How do I change the tire of my bicycle?", "Remove the wheel, lever the tire off, and fit the new one."),
        ("Is my bicycle insured against theft?", "Your home insurance covers the bicycle if it was locked."),
    ),
    "coral": (
        ("Why do corals bleach?", "Corals bleach when warm water makes them expel their algae."),
        ("How fast do corals grow?", "Most corals grow by one to ten centimeters a year."),
        ("What animals live among corals?", "Fish, crabs, sea stars and turtles live among corals."),
    ),
    "refund": (
        ("How do I request a refund?", "Choose the order under My orders and press Request a refund."),
        ("How long does a refund take?", "A refund takes five working days."),
        ("Which articles are excluded from a refund?", "Vouchers and opened software are excluded."),
    ),
    "moon": (
        ("How far away is the moon?", "The moon is about 384,000 kilometers away."),
        ("Who was the first person on the moon?", "Neil Armstrong was the first person on the moon."),
        ("Why does the moon change its shape?", "We see a different part of its sunlit side every night."),
    ),
    "wine": (
        ("At which temperature is red wine served?", "Red wine is served at 16 to 18 degrees."),
        ("Which grapes are in red wine from Rioja?", "Rioja is made mostly of Tempranillo."),
        ("How long does an opened bottle of red wine last?", "An opened bottle lasts three to five days."),
    ),
}
"""Questions and answers written for this measurement, by topic."""
