"""Nouns that mean another thing in pictures than the first sense WordNet gives them: monitor, not of an exam.

Only words for what can be seen, and only where pictures leave little doubt: a table is furniture in most of them, but a
trunk may be a tree's, an elephant's or a car's. Written from the glosses of the senses, not fitted to a data set.
"""

# The name of a synset, after another word than its own where that is meant.
_ROWS = """
barrel.n.02, battery.n.02, bib.n.02, board.n.03, bulb light_bulb.n.01, burner.n.02, cable.n.02, calculator.n.02,
calendar.n.03, carton.n.02, case.n.05, charger.n.02, china.n.02, coaster.n.03, comforter quilt.n.01,
controller control.n.09, cushion.n.03, grill.n.02, hanger.n.02, lid.n.02, light.n.02, marker.n.03, microwave.n.02,
mixer.n.04, monitor.n.04, mouse.n.04, mug.n.04, ottoman.n.03, outlet wall_socket.n.01, pacifier comforter.n.04,
pallet.n.02, planter.n.03, plate.n.04, plug.n.05, printer.n.02, saucer.n.02, screen.n.03, sheet.n.03, socket.n.03,
speaker loudspeaker.n.01, stamp postage.n.02, straw.n.04, stroller baby_buggy.n.01, table.n.02, tank.n.02,
tap water_faucet.n.01, television television_receiver.n.01, tissue.n.02, toaster.n.02, toilet.n.02,
tv television_receiver.n.01, vacuum.n.04, vanity dressing_table.n.01, washer.n.03,

background.n.02, bolt.n.06, bracelet.n.02, bracket.n.04, caption.n.03, chain.n.03, clip.n.03, colour color.n.01,
cross.n.03, crown.n.04, design.n.04, hammer.n.02, heart.n.07, hook.n.05, hose.n.03, knob.n.02, letter.n.02, mark.n.04,
number numeral.n.01, pattern design.n.04, pipe.n.02, reflection.n.05, ring.n.08, screw.n.04, sign.n.02, smudge.n.02,
spot.n.05, streak stripe.n.05, tattoo.n.02, writing.n.04,

belt.n.02, bikini.n.02, cape.n.02, cloak.n.02, flip-flop.n.02, helmet.n.02, hood.n.09, jersey.n.03, loafer.n.02,
pants trouser.n.01, visor bill.n.09,

arch.n.04, arena stadium.n.01, balcony.n.02, beam.n.02, bike bicycle.n.01, blind.n.03, bumper.n.02, canopy.n.03,
carriage.n.02, church.n.02, column.n.07, court.n.04, crane.n.04, dashboard.n.02, dock pier.n.01, dome.n.04, drain.n.03,
drone.n.04, hydrant.n.02, intersection.n.02, mall plaza.n.02, mansion.n.02, market marketplace.n.02, meter.n.02,
path.n.02, pedal.n.02, pillar column.n.07, post.n.04, radiator.n.02, runway.n.04, scooter motor_scooter.n.01,
shutter.n.02, slide.n.04, stage.n.03, step.n.04, track.n.03, trail.n.02, trailer.n.04, van.n.05, vessel.n.02,
wiper windshield_wiper.n.01, yard.n.02,

alarm.n.02, bat.n.05, brush.n.02, disc disk.n.02, disk.n.02, hammock.n.02, kite.n.03, net.n.05, polo.n.02, puzzle.n.02,
racket.n.04, saw.n.02, siren.n.04,

beak.n.02, branch.n.02, cardinal.n.04, cub.n.03, fin.n.06, flock.n.02, horn.n.02, lobster.n.02, officer policeman.n.01,
palm.n.03, plant.n.02, puddle pool.n.06, ram.n.05, runner.n.06, seal.n.09, shell.n.02, stem stalk.n.02, swallow.n.03,
tiger.n.02, tuna.n.02, turtle.n.02, tusk.n.02, whisker.n.02,

almond.n.02, asparagus.n.02, banana.n.02, beet.n.02, blueberry.n.02, broccoli.n.02, cake.n.03, cauliflower.n.02,
celery.n.02, cereal.n.03, cherry.n.03, chip.n.04, coconut.n.02, coke coca_cola.n.01, corn.n.03, crust.n.02,
cucumber.n.02, fig.n.04, filling.n.03, garlic.n.02, ginger.n.03, hot_dog hotdog.n.02, icing frosting.n.01, jelly.n.02,
kiwi.n.03, lettuce.n.03, lime.n.06, mango.n.02, melon.n.02, mushroom.n.05, mustard.n.02, parsley.n.02, peach.n.03,
pepper.n.04, pineapple.n.02, plum.n.02, popcorn.n.02, pumpkin.n.02, raspberry.n.02, slice.n.05, soda pop.n.02,
spinach.n.02, squash.n.02, zucchini.n.02
"""
# Lemma -> synset.
SENSES = {
    row.split()[0].split('.')[0].replace('_', ' '): row.split()[-1] for row in _ROWS.replace('\n', ' ').split(',')
}
