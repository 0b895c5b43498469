let survey = null;

const FIELDS = [
  "name", "conditions", "torch", "status", "breaks", "eager", "recompiles", "graphs", "cost", "costliest", "causes",
  "files", "compile", "peak", "findings", "seen", "offered", "proved", "speed", "said", "last",
];

/** Reads the data of the page, once.  A unit that ran and breaks or runs eager has a state of its own. */
function loadSurvey() {
  survey = JSON.parse(document.getElementById("data").textContent);
  survey.units = survey.units.map((values, index) => {
    const unit = Object.fromEntries(FIELDS.map((name, at) => [name, values[at]]));
    const broken = unit.status === "ok" && unit.breaks + unit.eager > 0;
    const words = [unit.name, survey.conditions[unit.conditions], survey.versions[unit.torch], survey.said[unit.last]];
    const where = [...unit.causes.map((at) => survey.causeNames[at]), ...unit.files.map((at) => survey.fileNames[at])];
    return { ...unit, index, state: broken ? "broken" : unit.status, text: [...words, ...where].join("\n").toLowerCase() };
  });
}

function surveyTabs() {
  const tabs = [
    { id: "units", label: "Units", count: survey.units.length, view: UnitsView, has: true },
    { id: "causes", label: "Causes", count: survey.causes.length, view: CausesView, has: survey.causes.length },
    { id: "files", label: "Files", count: survey.files.length, view: FilesView, has: survey.files.length },
    { id: "places", label: "Places", count: survey.places.length, view: PlacesView, has: survey.places.length },
    { id: "endings", label: "Did not run", count: survey.endings.length, view: EndingsView, has: survey.endings.length },
  ];
  return tabs.filter((tab) => tab.has);
}

/** The page as it runs, for whoever looks into it with the tools of the browser. */
var app = null;

function start() {
  try {
    loadSurvey();
    document.getElementById("tools").append(themeButton());
    app = new App(surveyTabs());
  } catch (error) {
    // A page of which a part is broken still shows its tables.
    document.documentElement.classList.remove("js");
    throw error;
  }
}

document.addEventListener("DOMContentLoaded", start);
